// A struct by value that holds two device pointers, and a buffer of device pointers.
#include "program.h"

struct Arguments {
    const float* from;
    char scale;
    float* to;
    unsigned n;
};

__global__ void scaled(Arguments arguments, short offset) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < arguments.n) arguments.to[i] = arguments.from[i] * (float)arguments.scale + (float)offset;
}

// Each row is an allocation of its own, found by a table that is on the device as well.
__global__ void rows(float* const* table, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) table[1][i] = table[0][i] - (float)i;
}

int main(int argc, char** argv) {
    size_t n = size_argument(argc, argv, 3000), bytes = n * sizeof(float);
    unsigned groups = (n + 255) / 256;
    std::vector<float> in = inputs(n, 11), result(n), expected(n);
    for (size_t i = 0; i < n; i++) expected[i] = in[i] * -5.0f + 7.0f - (float)i;
    float *a, *b, *c, **table;
    HIP(hipMalloc((void**)&a, bytes));
    HIP(hipMalloc((void**)&b, bytes));
    HIP(hipMalloc((void**)&c, bytes));
    HIP(hipMalloc((void**)&table, 2 * sizeof(float*)));
    float* pointers[2] = {b, c};
    HIP(hipMemcpy(table, pointers, sizeof(pointers), hipMemcpyHostToDevice));
    HIP(hipMemcpy(a, in.data(), bytes, hipMemcpyHostToDevice));
    scaled<<<groups, 256>>>(Arguments{a, -5, b, (unsigned)n}, (short)7);
    rows<<<groups, 256>>>(table, (unsigned)n);
    HIP(hipGetLastError());
    HIP(hipMemcpy(result.data(), c, bytes, hipMemcpyDeviceToHost));
    HIP(hipFree(a));
    HIP(hipFree(b));
    HIP(hipFree(c));
    HIP(hipFree(table));
    return finish(result, expected);
}
