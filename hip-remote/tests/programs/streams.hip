// Two streams whose order is an event's alone: the second adds what the first has made.
#include "program.h"

__global__ void scale(float* x, float factor, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}

__global__ void add(const float* x, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}

int main(int argc, char** argv) {
    size_t n = size_argument(argc, argv, 5000), bytes = n * sizeof(float);
    unsigned groups = (n + 255) / 256;
    std::vector<float> x = inputs(n, 9), y = inputs(n, 10), result(n), expected(n);
    for (size_t i = 0; i < n; i++) expected[i] = y[i] + 2.0f * x[i];
    float *dx, *dy;
    hipStream_t first, second;
    hipEvent_t begin, scaled, end;
    HIP(hipMalloc((void**)&dx, bytes));
    HIP(hipMalloc((void**)&dy, bytes));
    HIP(hipStreamCreate(&first));
    HIP(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    HIP(hipEventCreate(&begin));
    HIP(hipEventCreateWithFlags(&scaled, hipEventDisableTiming));
    HIP(hipEventCreate(&end));
    HIP(hipEventRecord(begin, first));
    HIP(hipMemcpyAsync(dx, x.data(), bytes, hipMemcpyHostToDevice, first));
    scale<<<groups, 256, 0, first>>>(dx, 2.0f, (unsigned)n);
    HIP(hipEventRecord(scaled, first));
    HIP(hipMemcpyAsync(dy, y.data(), bytes, hipMemcpyHostToDevice, second));
    HIP(hipStreamWaitEvent(second, scaled, 0));
    add<<<groups, 256, 0, second>>>(dx, dy, (unsigned)n);
    HIP(hipMemcpyAsync(result.data(), dy, bytes, hipMemcpyDeviceToHost, second));
    HIP(hipEventRecord(end, second));
    HIP(hipEventSynchronize(end));
    float milliseconds = -1.0f;
    HIP(hipEventElapsedTime(&milliseconds, begin, end));
    if (!(milliseconds >= 0.0f)) {
        printf("the events are %g ms apart\n", milliseconds);
        return 1;
    }
    HIP(hipStreamQuery(second));
    HIP(hipEventQuery(scaled));
    HIP(hipEventDestroy(begin));
    HIP(hipEventDestroy(scaled));
    HIP(hipEventDestroy(end));
    HIP(hipStreamDestroy(first));
    HIP(hipStreamDestroy(second));
    HIP(hipFree(dx));
    HIP(hipFree(dy));
    return finish(result, expected);
}
