// Copies that do not wait, between pinned, pageable and device memory, with fills of each width.
#include "program.h"
#include <cstring>

__global__ void combine(unsigned* out, const unsigned* words, const unsigned short* halves, const unsigned char* bytes, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = words[i] + ((unsigned)halves[i] << 8) + bytes[i] + i;
}

int main(int argc, char** argv) {
    size_t n = size_argument(argc, argv, 4000), bytes = n * sizeof(unsigned);
    std::vector<unsigned> result(2 * n), expected(2 * n);
    unsigned *pinned, *words, *out, *copy;
    unsigned short* halves;
    unsigned char* small;
    hipStream_t stream;
    HIP(hipHostMalloc((void**)&pinned, bytes, hipHostMallocDefault));
    HIP(hipMalloc((void**)&words, bytes));
    HIP(hipMalloc((void**)&out, bytes));
    HIP(hipMalloc((void**)&copy, bytes));
    HIP(hipMalloc((void**)&halves, n * 2));
    HIP(hipMalloc((void**)&small, n));
    HIP(hipStreamCreate(&stream));
    HIP(hipMemsetD32Async((hipDeviceptr_t)words, (int)0x89abcdef, n, stream));
    HIP(hipMemsetD16Async((hipDeviceptr_t)halves, 0x4567, n, stream));
    HIP(hipMemsetAsync(small, 0x23, n, stream));
    std::vector<unsigned> head(n / 2, 7);
    HIP(hipMemcpyAsync(words, head.data(), n / 2 * sizeof(unsigned), hipMemcpyHostToDevice, stream));
    // A pageable source may be overwritten when the copy returns.
    memset(head.data(), 0xff, n / 2 * sizeof(unsigned));
    combine<<<(n + 63) / 64, 64, 0, stream>>>(out, words, halves, small, (unsigned)n);
    HIP(hipMemcpyAsync(copy, out, bytes, hipMemcpyDeviceToDevice, stream));
    HIP(hipMemcpyAsync(pinned, copy, bytes, hipMemcpyDeviceToHost, stream));
    // What comes to pinned memory goes back in the stream's order.
    HIP(hipMemcpyAsync(words, pinned, bytes, hipMemcpyHostToDevice, stream));
    HIP(hipMemcpyAsync(result.data(), words, bytes, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    memcpy(result.data() + n, pinned, bytes);
    for (size_t i = 0; i < 2 * n; i++) {
        unsigned j = (unsigned)(i % n);
        expected[i] = (j < n / 2 ? 7u : 0x89abcdefu) + (0x4567u << 8) + 0x23u + j;
    }
    // Pinned memory is freed when nothing writes to it any more.
    HIP(hipMemcpyAsync(pinned, copy, bytes, hipMemcpyDeviceToHost, stream));
    HIP(hipHostFree(pinned));
    HIP(hipDeviceSynchronize());
    HIP(hipStreamDestroy(stream));
    HIP(hipFree(words));
    HIP(hipFree(out));
    HIP(hipFree(copy));
    HIP(hipFree(halves));
    HIP(hipFree(small));
    return finish(result, expected);
}
