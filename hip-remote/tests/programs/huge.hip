// Copies of more than 4 GiB in each direction: sizes and offsets have 64 bits.
#include "program.h"

__global__ void add(unsigned char* to, size_t at) { to[at] += 3; }

int main(int argc, char** argv) {
    size_t bytes = size_argument(argc, argv, (4ull << 30) + 1), page = 4096, last = bytes - 1;
    unsigned char *host = (unsigned char*)malloc(bytes), *device;
    if (!host) {
        printf("there are no %zu bytes\n", bytes);
        return 1;
    }
    for (size_t i = 0; i + page <= bytes; i += page) *(uint64_t*)(host + i) = i;
    host[last] = 7;
    HIP(hipMalloc((void**)&device, bytes));
    HIP(hipMemcpy(device, host, bytes, hipMemcpyHostToDevice));
    for (size_t i = 0; i + page <= bytes; i += page) *(uint64_t*)(host + i) = 1;
    host[last] = 0;
    add<<<1, 1>>>(device, last);
    HIP(hipMemcpy(host, device, bytes, hipMemcpyDeviceToHost));
    HIP(hipFree(device));
    for (size_t i = 0; i + page <= bytes; i += page)
        if (*(uint64_t*)(host + i) != i) {
            printf("byte %zu is that of byte %zu\n", i, (size_t)*(uint64_t*)(host + i));
            return 1;
        }
    if (host[last] != 10) {
        printf("the last byte is %d\n", host[last]);
        return 1;
    }
    printf("ok\n");
    return 0;
}
