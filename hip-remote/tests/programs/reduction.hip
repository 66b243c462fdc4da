// Sums by local memory: a barrier between the waves of a work group in each step.
#include "program.h"

__global__ void sum(const float* in, float* out, unsigned n) {
    __shared__ float shared[256];
    unsigned t = threadIdx.x, i = blockIdx.x * 256 + t;
    shared[t] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (unsigned half = 128; half > 0; half >>= 1) {
        if (t < half) shared[t] += shared[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = shared[0];
}

// Sums into local memory whose size is the launch's.
__global__ void sum_dynamic(const float* in, float* out, unsigned n) {
    extern __shared__ float dynamic[];
    unsigned t = threadIdx.x;
    float mine = 0.0f;
    for (unsigned i = t; i < n; i += blockDim.x) mine += in[i];
    dynamic[t] = mine;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) dynamic[t] += dynamic[t + half];
        __syncthreads();
    }
    if (t == 0) *out = dynamic[0];
}

int main(int argc, char** argv) {
    size_t n = size_argument(argc, argv, 10000), groups = (n + 255) / 256;
    std::vector<float> in = inputs(n, 5), result(groups + 1), expected(groups + 1);
    for (size_t i = 0; i < n; i++) {
        expected[i / 256] += in[i];
        expected[groups] += in[i];
    }
    float *din, *dout;
    HIP(hipMalloc((void**)&din, n * sizeof(float)));
    HIP(hipMalloc((void**)&dout, (groups + 1) * sizeof(float)));
    HIP(hipMemcpy(din, in.data(), n * sizeof(float), hipMemcpyHostToDevice));
    sum<<<groups, 256>>>(din, dout, (unsigned)n);
    HIP(hipGetLastError());
    sum_dynamic<<<1, 128, 128 * sizeof(float)>>>(dout, dout + groups, (unsigned)groups);
    HIP(hipGetLastError());
    HIP(hipMemcpy(result.data(), dout, (groups + 1) * sizeof(float), hipMemcpyDeviceToHost));
    HIP(hipFree(din));
    HIP(hipFree(dout));
    return finish(result, expected);
}
