// Adds two vectors: a launch, and copies there and back.
#include "program.h"

extern "C" __global__ void vadd(const float* a, const float* b, float* c, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

int main(int argc, char** argv) {
    size_t n = size_argument(argc, argv, 10000);
    std::vector<float> a = inputs(n, 1), b = inputs(n, 2), c(n), expected(n);
    for (size_t i = 0; i < n; i++) expected[i] = a[i] + b[i];
    float *da, *db, *dc;
    size_t bytes = n * sizeof(float);
    HIP(hipMalloc((void**)&da, bytes));
    HIP(hipMalloc((void**)&db, bytes));
    HIP(hipMalloc((void**)&dc, bytes));
    HIP(hipMemcpy(da, a.data(), bytes, hipMemcpyHostToDevice));
    HIP(hipMemcpy(db, b.data(), bytes, hipMemcpyHostToDevice));
    vadd<<<(n + 255) / 256, 256>>>(da, db, dc, (unsigned)n);
    HIP(hipGetLastError());
    HIP(hipMemcpy(c.data(), dc, bytes, hipMemcpyDeviceToHost));
    HIP(hipFree(da));
    HIP(hipFree(db));
    HIP(hipFree(dc));
    return finish(c, expected);
}
