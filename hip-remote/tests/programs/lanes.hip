// What lanes do together: atomic operations, shuffles, ballots, groups of three dimensions, and scratch memory.
#include "program.h"

__global__ void histogram(const unsigned char* in, unsigned* out, int n) {
    __shared__ unsigned bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i]], 1u);
    __syncthreads();
    atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

__global__ void shuffle(const int* in, int* sums, int* counts, int* swapped) {
    int lane = threadIdx.x & 63, i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i];
    unsigned long long mask = __ballot(v > 3);
    counts[i] = __popcll(mask & ((1ull << lane) - 1));
    swapped[i] = __shfl_xor(v, 5);
    for (int offset = 32; offset > 0; offset >>= 1) v += __shfl_down(v, offset);
    if (lane == 0) sums[i / 64] = v;
}

__global__ void coordinates(int* out) {
    unsigned in_group = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned group = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    out[group * blockDim.x * blockDim.y * blockDim.z + in_group] =
        threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x + 10000 * blockIdx.y + 100000 * blockIdx.z;
}

// The index is not known to the compiler, so that the array is in scratch memory.
__global__ void scratch(int* out, int k) {
    int a[64];
    for (int i = 0; i < 64; i++) a[(i * 7 + k) & 63] = i * k;
    out[threadIdx.x] = a[(threadIdx.x * 3) & 63] + a[threadIdx.x & 63];
}

__global__ void compete(unsigned long long* least, int* most, unsigned* ring, float* sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicMin(least, (unsigned long long)(1000 - i % 777));
    atomicMax(most, (i * 37) % 1009 - 500);
    atomicInc(ring, 99u);
    atomicAdd(sum, 0.5f);
}

int main(int argc, char** argv) {
    size_t n = (size_argument(argc, argv, 1024) + 255) / 256 * 256;
    std::vector<int> result, expected;
    auto take = [&](const void* device, size_t count) {
        size_t at = result.size();
        result.resize(at + count);
        HIP(hipMemcpy(result.data() + at, device, count * sizeof(int), hipMemcpyDeviceToHost));
    };
    unsigned char* bytes;
    unsigned* bins;
    int *in, *sums, *counts, *swapped, *places, *arrays;
    HIP(hipMalloc((void**)&bytes, n));
    HIP(hipMalloc((void**)&bins, 256 * sizeof(unsigned)));
    HIP(hipMalloc((void**)&in, n * sizeof(int)));
    HIP(hipMalloc((void**)&sums, n / 64 * sizeof(int)));
    HIP(hipMalloc((void**)&counts, n * sizeof(int)));
    HIP(hipMalloc((void**)&swapped, n * sizeof(int)));
    HIP(hipMalloc((void**)&places, 60 * 24 * sizeof(int)));
    HIP(hipMalloc((void**)&arrays, 192 * sizeof(int)));
    std::vector<unsigned char> text(n);
    std::vector<int> values(n), histogram_expected(256), sums_expected(n / 64), counts_expected(n), swapped_expected(n);
    for (size_t i = 0; i < n; i++) {
        text[i] = (unsigned char)(i * i / 3);
        values[i] = (int)(i * 31 % 11) - 2;
        histogram_expected[text[i]]++;
    }
    for (size_t i = 0; i < n; i++) {
        sums_expected[i / 64] += values[i];
        for (size_t j = i / 64 * 64; j < i; j++) counts_expected[i] += values[j] > 3;
        swapped_expected[i] = values[i ^ 5];
    }
    HIP(hipMemcpy(bytes, text.data(), n, hipMemcpyHostToDevice));
    HIP(hipMemcpy(in, values.data(), n * sizeof(int), hipMemcpyHostToDevice));
    HIP(hipMemset(bins, 0, 256 * sizeof(unsigned)));
    histogram<<<3, 256>>>(bytes, bins, (int)n);
    shuffle<<<n / 256, 256>>>(in, sums, counts, swapped);
    coordinates<<<dim3(3, 4, 5), dim3(2, 3, 4)>>>(places);
    scratch<<<1, 192>>>(arrays, 13);
    HIP(hipGetLastError());
    take(bins, 256), take(sums, n / 64), take(counts, n), take(swapped, n), take(places, 60 * 24), take(arrays, 192);
    for (const auto* part : {&histogram_expected, &sums_expected, &counts_expected, &swapped_expected})
        expected.insert(expected.end(), part->begin(), part->end());
    for (int bz = 0; bz < 5; bz++)
        for (int by = 0; by < 4; by++)
            for (int bx = 0; bx < 3; bx++)
                for (int z = 0; z < 4; z++)
                    for (int y = 0; y < 3; y++)
                        for (int x = 0; x < 2; x++)
                            expected.push_back(x + 10 * y + 100 * z + 1000 * bx + 10000 * by + 100000 * bz);
    int a[64];
    for (int i = 0; i < 64; i++) a[(i * 7 + 13) & 63] = i * 13;
    for (int i = 0; i < 192; i++) expected.push_back(a[(i * 3) & 63] + a[i & 63]);

    struct { unsigned long long least; int most; unsigned ring; float sum; int rest; } end = {~0ull, -10000, 0, 0.0f, 0}, *device;
    HIP(hipMalloc((void**)&device, sizeof(end)));
    HIP(hipMemcpy(device, &end, sizeof(end), hipMemcpyHostToDevice));
    compete<<<4, 250>>>(&device->least, &device->most, &device->ring, &device->sum);
    HIP(hipMemcpy(&end, device, sizeof(end), hipMemcpyDeviceToHost));
    int most = -10000;
    for (int i = 0; i < 1000; i++) most = (i * 37) % 1009 - 500 > most ? (i * 37) % 1009 - 500 : most;
    result.insert(result.end(), {(int)end.least, end.most, (int)end.ring, (int)end.sum});
    expected.insert(expected.end(), {1000 - 776, most, 0, 500});
    for (void* pointer : {(void*)bytes, (void*)bins, (void*)in, (void*)sums, (void*)counts, (void*)swapped, (void*)places, (void*)arrays, (void*)device})
        HIP(hipFree(pointer));
    return finish(result, expected);
}
