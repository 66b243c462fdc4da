// Errors arrive where HIP says: at once where the host can see them, and at a synchronisation where a kernel goes wrong.
#include "program.h"

__global__ void store(int* to, int value) { *to = value; }

static void gives(hipError_t error, hipError_t wanted, const char* call) {
    if (error == wanted) return;
    printf("%s gives %s in place of %s\n", call, hipGetErrorName(error), hipGetErrorName(wanted));
    exit(1);
}
#define GIVES(wanted, call) gives(call, wanted, #call)

int main() {
    int *memory, host[4] = {1, 2, 3, 4};
    HIP(hipMalloc((void**)&memory, sizeof(host)));
    GIVES(hipErrorInvalidValue, hipMemcpy(memory, host, sizeof(host) + 1, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipMemcpy(memory + 1, host, sizeof(host), hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidValue, hipFree(memory + 1));
    GIVES(hipErrorInvalidValue, hipMemset(host, 0, sizeof(host)));
    void* huge = nullptr;
    GIVES(hipErrorOutOfMemory, hipMalloc(&huge, (size_t)1 << 46));
    GIVES(hipErrorOutOfMemory, hipGetLastError());
    GIVES(hipSuccess, hipGetLastError());
    GIVES(hipErrorInvalidDevice, hipSetDevice(99));
    store<<<1, 2048>>>(memory, 1);
    GIVES(hipErrorInvalidConfiguration, hipGetLastError());
    store<<<1, 1>>>(memory, 42);
    HIP(hipMemcpy(host, memory, sizeof(host), hipMemcpyDeviceToHost));
    if (host[0] != 42) {
        printf("the kernel stored %d\n", host[0]);
        return 1;
    }
    // No allocation is there, nor anything else.
    store<<<1, 1>>>((int*)0x10, 1);
    HIP(hipGetLastError());
    GIVES(hipErrorIllegalAddress, hipDeviceSynchronize());
    GIVES(hipErrorIllegalAddress, hipMemcpy(host, memory, sizeof(host), hipMemcpyDeviceToHost));
    printf("ok\n");
    return 0;
}
