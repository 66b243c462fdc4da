// A loop over the grid, with a number among the arguments.
#include "program.h"

__global__ void saxpy(size_t n, float a, const float* x, float* y) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}

int main(int argc, char** argv) {
    size_t n = size_argument(argc, argv, 10000);
    std::vector<float> x = inputs(n, 3), y = inputs(n, 4), expected(n);
    for (size_t i = 0; i < n; i++) expected[i] = 3.0f * x[i] + y[i];
    float *dx, *dy;
    size_t bytes = n * sizeof(float);
    HIP(hipMalloc((void**)&dx, bytes));
    HIP(hipMalloc((void**)&dy, bytes));
    HIP(hipMemcpy(dx, x.data(), bytes, hipMemcpyDefault));
    HIP(hipMemcpy(dy, y.data(), bytes, hipMemcpyDefault));
    // Fewer threads than elements: each thread has several.
    hipLaunchKernelGGL(saxpy, dim3((n + 511) / 512), dim3(128), 0, 0, n, 3.0f, dx, dy);
    HIP(hipGetLastError());
    HIP(hipMemcpy(y.data(), dy, bytes, hipMemcpyDefault));
    HIP(hipFree(dx));
    HIP(hipFree(dy));
    return finish(y, expected);
}
