// What HIP says of devices, pointers, kernels and errors holds together.
#include "program.h"
#include <cstring>
#include <string>

__device__ int variable[3];

__global__ void __launch_bounds__(256) kernel(float* to) {
    __shared__ float shared[300];
    shared[threadIdx.x] = to[threadIdx.x];
    __syncthreads();
    to[threadIdx.x] = shared[(threadIdx.x + 1) % blockDim.x] + (float)variable[0];
}

static int attribute(hipDeviceAttribute_t which, int device = 0) {
    int value = -1;
    HIP(hipDeviceGetAttribute(&value, which, device));
    return value;
}

int main() {
    int count = 0, device = -1, version = 0;
    HIP(hipGetDeviceCount(&count));
    HIP(hipGetDevice(&device));
    HIP(hipRuntimeGetVersion(&version));
    EXPECT(count >= 1 && device == 0 && version > 0);
    hipDeviceProp_t properties;
    HIP(hipGetDeviceProperties(&properties, 0));
    EXPECT(strlen(properties.name) > 0);
    EXPECT(strncmp(properties.gcnArchName, "gfx", 3) == 0);
    EXPECT(properties.warpSize == attribute(hipDeviceAttributeWarpSize));
    EXPECT(properties.maxThreadsPerBlock == attribute(hipDeviceAttributeMaxThreadsPerBlock));
    EXPECT(properties.multiProcessorCount == attribute(hipDeviceAttributeMultiprocessorCount));
    EXPECT((int)properties.sharedMemPerBlock == attribute(hipDeviceAttributeMaxSharedMemoryPerBlock));
    EXPECT(properties.maxGridSize[1] == attribute(hipDeviceAttributeMaxGridDimY));
    EXPECT(properties.major == attribute(hipDeviceAttributeComputeCapabilityMajor));
    EXPECT(hipGetDeviceProperties(&properties, count) == hipErrorInvalidDevice);
    int value;
    EXPECT(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, -1) == hipErrorInvalidDevice);
    char bus[32];
    int again = -1;
    HIP(hipDeviceGetPCIBusId(bus, sizeof(bus), 0));
    HIP(hipDeviceGetByPCIBusId(&again, bus));
    EXPECT(again == 0);

    size_t before, after, total, bytes = 64 << 20;
    char* memory;
    HIP(hipMemGetInfo(&before, &total));
    EXPECT(total == properties.totalGlobalMem && before <= total);
    HIP(hipMalloc((void**)&memory, bytes));
    HIP(hipMemGetInfo(&after, &total));
    EXPECT(before - after >= bytes);
    hipPointerAttribute_t pointer;
    HIP(hipPointerGetAttributes(&pointer, memory + 100));
    EXPECT(pointer.memoryType == hipMemoryTypeDevice && pointer.device == 0 && pointer.devicePointer == memory + 100);
    hipDeviceptr_t base;
    size_t size;
    HIP(hipMemGetAddressRange(&base, &size, (hipDeviceptr_t)(memory + 100)));
    EXPECT(base == (hipDeviceptr_t)memory && size == bytes);
    EXPECT(hipPointerGetAttributes(&pointer, &pointer) == hipErrorInvalidValue);
    HIP(hipFree(memory));
    HIP(hipMemGetInfo(&after, &total));
    EXPECT(after == before);
    EXPECT(hipPointerGetAttributes(&pointer, memory) == hipErrorInvalidValue);

    float *pinned, *device_memory, own[256], result[256];
    unsigned flags = 77;
    HIP(hipHostMalloc((void**)&pinned, 4096, hipHostMallocDefault));
    HIP(hipHostGetFlags(&flags, pinned));
    EXPECT(flags == hipHostMallocDefault);
    HIP(hipPointerGetAttributes(&pointer, pinned));
    EXPECT(pointer.memoryType == hipMemoryTypeHost && pointer.hostPointer == pinned);
    HIP(hipHostRegister(own, sizeof(own), hipHostRegisterDefault));
    EXPECT(hipHostRegister(own, sizeof(own), hipHostRegisterDefault) == hipErrorHostMemoryAlreadyRegistered);
    HIP(hipHostUnregister(own));
    EXPECT(hipHostUnregister(own) == hipErrorHostMemoryNotRegistered);
    HIP(hipHostFree(pinned));

    hipFuncAttributes function;
    HIP(hipFuncGetAttributes(&function, (const void*)kernel));
    EXPECT(function.sharedSizeBytes == 300 * sizeof(float));
    EXPECT(function.maxThreadsPerBlock == 256);
    EXPECT(function.numRegs > 0);
    int blocks = 0, grid = 0, block = 0;
    HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void*)kernel, 256, 0));
    EXPECT(blocks >= 1);
    int fewer = blocks;
    HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&fewer, (const void*)kernel, 256, 40000));
    EXPECT(fewer == 1);
    HIP(hipOccupancyMaxPotentialBlockSize(&grid, &block, (const void*)kernel, 0, 0));
    EXPECT(grid >= 1 && block >= 64 && block <= 256);
    int least, greatest;
    HIP(hipDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(least >= greatest);
    hipStream_t stream;
    HIP(hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, greatest));
    HIP(hipStreamGetPriority(stream, &value));
    EXPECT(value == greatest);
    HIP(hipStreamGetFlags(stream, &flags));
    EXPECT(flags == hipStreamNonBlocking);
    HIP(hipStreamDestroy(stream));

    // The kernel's launch bounds are its bounds.
    HIP(hipMalloc((void**)&device_memory, 512 * sizeof(float)));
    kernel<<<1, 512>>>(device_memory);
    EXPECT(hipGetLastError() != hipSuccess);
    // A block has so much shared memory at most, the kernel's own 1,200 bytes among it.
    kernel<<<1, 256, 1 << 20>>>(device_memory);
    EXPECT(hipGetLastError() != hipSuccess);
    kernel<<<1, 256, properties.sharedMemPerBlock - 1199>>>(device_memory);
    EXPECT(hipGetLastError() != hipSuccess);
    for (int i = 0; i < 256; i++) own[i] = (float)i;
    int three[3] = {5, 6, 7};
    HIP(hipMemcpyToSymbol(HIP_SYMBOL(variable), three, sizeof(three), 0, hipMemcpyHostToDevice));
    HIP(hipMemcpy(device_memory, own, sizeof(own), hipMemcpyHostToDevice));
    kernel<<<1, 256>>>(device_memory);
    HIP(hipMemcpy(result, device_memory, sizeof(result), hipMemcpyDeviceToHost));
    EXPECT(result[0] == 6.0f && result[255] == 5.0f);
    HIP(hipFree(device_memory));
    EXPECT(std::string(hipGetErrorName(hipErrorInvalidValue)) == "hipErrorInvalidValue");
    EXPECT(strlen(hipGetErrorString(hipErrorNotReady)) > 0);
    printf("ok\n");
    return 0;
}
