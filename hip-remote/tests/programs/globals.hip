// Variables of a module: the host writes and reads them by their symbols, and kernels use them.
#include "program.h"

__constant__ float weights[4] = {1.0f, 0.0f, 0.0f, 0.0f};
__device__ int counter = 5;
__device__ float last;

__global__ void weigh(const float* in, float* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * weights[i & 3];
    if (i == n - 1) last = out[i];
    if (i < n && (i & 1)) atomicAdd(&counter, 2);
}

int main(int argc, char** argv) {
    size_t n = size_argument(argc, argv, 3000), bytes = n * sizeof(float);
    std::vector<float> in = inputs(n, 12), result(n), expected(n);
    float host_weights[4] = {2.0f, -1.0f, 0.5f, 4.0f};
    for (size_t i = 0; i < n; i++) expected[i] = in[i] * host_weights[i & 3];
    float *din, *dout, *address;
    size_t symbol = 0;
    HIP(hipGetSymbolSize(&symbol, HIP_SYMBOL(weights)));
    HIP(hipGetSymbolAddress((void**)&address, HIP_SYMBOL(weights)));
    float before[4];
    HIP(hipMemcpyFromSymbol(before, HIP_SYMBOL(weights), sizeof(before), 0, hipMemcpyDeviceToHost));
    HIP(hipMemcpyToSymbol(HIP_SYMBOL(weights), host_weights, 2 * sizeof(float), 0, hipMemcpyHostToDevice));
    HIP(hipMemcpyToSymbol(HIP_SYMBOL(weights), host_weights + 2, 2 * sizeof(float), 2 * sizeof(float), hipMemcpyHostToDevice));
    HIP(hipMalloc((void**)&din, bytes));
    HIP(hipMalloc((void**)&dout, bytes));
    HIP(hipMemcpy(din, in.data(), bytes, hipMemcpyHostToDevice));
    weigh<<<(n + 127) / 128, 128>>>(din, dout, (unsigned)n);
    HIP(hipGetLastError());
    HIP(hipMemcpy(result.data(), dout, bytes, hipMemcpyDeviceToHost));
    int count = 0;
    float end = 0.0f, third = 0.0f;
    HIP(hipMemcpyFromSymbol(&count, HIP_SYMBOL(counter), sizeof(count), 0, hipMemcpyDeviceToHost));
    HIP(hipMemcpyFromSymbol(&end, HIP_SYMBOL(last), sizeof(end), 0, hipMemcpyDeviceToHost));
    HIP(hipMemcpy(&third, address + 2, sizeof(third), hipMemcpyDeviceToHost));
    HIP(hipFree(din));
    HIP(hipFree(dout));
    const float more[] = {(float)symbol, before[0], before[1], (float)count, end, third};
    const float right[] = {(float)sizeof(weights), 1.0f, 0.0f, (float)(5 + 2 * (n / 2)), expected[n - 1], host_weights[2]};
    result.insert(result.end(), more, more + 6);
    expected.insert(expected.end(), right, right + 6);
    return finish(result, expected);
}
