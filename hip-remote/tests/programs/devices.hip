// Each device has its own memory, variables and streams; copies go between them.
#include "program.h"
#include <thread>

__device__ int variable = 1;

__global__ void add(int* to, int value) { to[threadIdx.x] += value + variable; }

int main() {
    int count = 0;
    HIP(hipGetDeviceCount(&count));
    if (count < 2) {
        printf("there is one device: set TEST_GPU_DEVICES=2\n");
        return 1;
    }
    int *memory[2], result[64];
    for (int device = 0; device < 2; device++) {
        HIP(hipSetDevice(device));
        HIP(hipMalloc((void**)&memory[device], sizeof(result)));
        HIP(hipMemset(memory[device], 0, sizeof(result)));
        int value = 10 * (device + 1);
        HIP(hipMemcpyToSymbol(HIP_SYMBOL(variable), &value, sizeof(value), 0, hipMemcpyHostToDevice));
    }
    for (int device = 0; device < 2; device++) {
        HIP(hipSetDevice(device));
        add<<<1, 64>>>(memory[device], device);
        HIP(hipDeviceSynchronize());
        hipPointerAttribute_t pointer;
        HIP(hipPointerGetAttributes(&pointer, memory[device]));
        if (pointer.device != device) {
            printf("the pointer of device %d is said to be of device %d\n", device, pointer.device);
            return 1;
        }
    }
    // Another thread begins with device 0, whatever this one has.
    int other = -1;
    std::thread([&] { HIP(hipGetDevice(&other)); }).join();
    if (hipMemcpyPeer(memory[0], 0, memory[1], count, sizeof(int)) != hipErrorInvalidDevice ||
        hipMemcpyPeerAsync(memory[0], -1, memory[1], 1, sizeof(int), 0) != hipErrorInvalidDevice) {
        printf("there is a copy between devices that are none\n");
        return 1;
    }
    HIP(hipMemcpyPeer(memory[0], 0, memory[1], 1, 32 * sizeof(int)));
    HIP(hipMemcpy(result, memory[0], sizeof(result), hipMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++) {
        if (result[i] != (i < 32 ? 21 : 10)) {
            printf("element %d is %d\n", i, result[i]);
            return 1;
        }
    }
    HIP(hipFree(memory[0]));
    HIP(hipFree(memory[1]));
    if (other != 0) {
        printf("another thread begins with device %d\n", other);
        return 1;
    }
    printf("ok\n");
    return 0;
}
