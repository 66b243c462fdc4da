// Memory of the device and pinned memory of the host, and what a pointer is.
#include "gpu.h"

hipError_t hipMalloc(void **to, size_t bytes) {
    uint64_t address = 0;
    if (!to) return last(hipErrorInvalidValue);
    int status = gpu_malloc(current_device(), bytes, &address);
    *to = (void *)(uintptr_t)address;
    return last(status);
}

hipError_t hipMallocPitch(void **to, size_t *pitch, size_t width, size_t height) {
    if (!to || !pitch || width == 0 || height == 0) return last(hipErrorInvalidValue);
    *pitch = (width + 255) & ~(size_t)255;
    return hipMalloc(to, *pitch * height);
}

hipError_t hipFree(void *pointer) { return last(gpu_free(number(pointer))); }

hipError_t hipHostMalloc(void **to, size_t bytes, unsigned int flags) {
    uint64_t address = 0;
    if (!to) return last(hipErrorInvalidValue);
    int status = gpu_host_malloc(current_device(), bytes, flags, &address);
    *to = (void *)(uintptr_t)address;
    return last(status);
}

hipError_t hipHostAlloc(void **to, size_t bytes, unsigned int flags) { return hipHostMalloc(to, bytes, flags); }
hipError_t hipMallocHost(void **to, size_t bytes) { return hipHostMalloc(to, bytes, 0); }
hipError_t hipHostFree(void *pointer) { return last(gpu_host_free(number(pointer))); }
hipError_t hipFreeHost(void *pointer) { return hipHostFree(pointer); }

hipError_t hipHostRegister(void *pointer, size_t bytes, unsigned int flags) {
    return last(gpu_host_register(current_device(), number(pointer), bytes, flags));
}

hipError_t hipHostUnregister(void *pointer) { return last(gpu_host_unregister(number(pointer))); }

hipError_t hipHostGetDevicePointer(void **to, void *pointer, unsigned int flags) {
    struct found found;
    (void)flags;
    if (!to || gpu_find(number(pointer), &found) || found.kind != 2) return last(hipErrorInvalidValue);
    *to = pointer;
    return last(hipSuccess);
}

hipError_t hipHostGetFlags(unsigned int *flags, void *pointer) {
    struct found found;
    if (!flags || gpu_find(number(pointer), &found) || found.kind != 2) return last(hipErrorInvalidValue);
    *flags = found.flags;
    return last(hipSuccess);
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *to, const void *pointer) {
    struct found found;
    if (!to || gpu_find(number(pointer), &found)) return last(hipErrorInvalidValue);
    memset(to, 0, sizeof(*to));
    to->memoryType = found.kind == 1 ? hipMemoryTypeDevice : hipMemoryTypeHost;
    to->device = found.device;
    to->devicePointer = (void *)pointer;
    to->hostPointer = found.kind == 1 ? NULL : (void *)pointer;
    to->allocationFlags = found.flags;
    return last(hipSuccess);
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t pointer) {
    struct found found;
    if (gpu_find(number(pointer), &found)) return last(hipErrorNotFound);
    if (base) *base = (hipDeviceptr_t)(uintptr_t)found.start;
    if (bytes) *bytes = found.bytes;
    return last(hipSuccess);
}

hipError_t hipMemPtrGetInfo(void *pointer, size_t *bytes) {
    return hipMemGetAddressRange(NULL, bytes, pointer);
}
