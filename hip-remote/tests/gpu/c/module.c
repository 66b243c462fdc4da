// Modules, and what their kernels say of themselves.
#include "gpu.h"

hipError_t hipModuleLoadData(hipModule_t *to, const void *image) {
    uint64_t handle = 0;
    if (!to) return last(hipErrorInvalidValue);
    int status = gpu_module_load(current_device(), image, &handle);
    *to = (hipModule_t)(uintptr_t)handle;
    return last(status);
}

hipError_t hipModuleLoadDataEx(hipModule_t *to, const void *image, unsigned int count, hipJitOption *options, void **values) {
    (void)count, (void)options, (void)values;
    return hipModuleLoadData(to, image);
}

hipError_t hipModuleLoad(hipModule_t *to, const char *path) {
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (!file) return last(hipErrorFileNotFound);
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    rewind(file);
    // A short file ends in zeroes, so that reading its headers stays inside.
    char *image = length < 0 ? NULL : calloc(1, (size_t)length + 4096);
    if (!image || fread(image, 1, (size_t)length, file) != (size_t)length) {
        fclose(file);
        free(image);
        return last(hipErrorInvalidValue);
    }
    fclose(file);
    hipError_t error = hipModuleLoadData(to, image);
    free(image);
    return error;
}

hipError_t hipModuleUnload(hipModule_t module) { return last(gpu_module_unload(number(module))); }

hipError_t hipModuleGetFunction(hipFunction_t *to, hipModule_t module, const char *name) {
    uint64_t handle = 0;
    if (!to) return last(hipErrorInvalidValue);
    int status = gpu_module_function(number(module), name, &handle);
    *to = (hipFunction_t)(uintptr_t)handle;
    return last(status);
}

hipError_t hipModuleGetGlobal(hipDeviceptr_t *to, size_t *bytes, hipModule_t module, const char *name) {
    uint64_t address = 0, length = 0;
    int status = gpu_module_global(number(module), name, &address, &length);
    if (!status && to) *to = (hipDeviceptr_t)(uintptr_t)address;
    if (!status && bytes) *bytes = length;
    return last(status);
}

hipError_t hipFuncGetAttribute(int *to, hipFunction_attribute attribute, hipFunction_t function) {
    struct kernel_info info;
    if (!to) return last(hipErrorInvalidValue);
    int status = gpu_kernel_info(number(function), &info);
    if (status) return last(status);
    switch (attribute) {
        case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *to = (int)info.max_group; break;
        case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *to = (int)info.local; break;
        case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *to = 0; break;
        case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *to = (int)info.scratch; break;
        case HIP_FUNC_ATTRIBUTE_NUM_REGS: *to = (int)info.vgprs; break;
        case HIP_FUNC_ATTRIBUTE_PTX_VERSION: case HIP_FUNC_ATTRIBUTE_BINARY_VERSION: *to = 30; break;
        case HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA: case HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *to = 0; break;
        case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *to = 65536 - (int)info.local; break;
        default: return last(hipErrorInvalidValue);
    }
    return last(hipSuccess);
}

hipError_t hipFuncGetAttributes(struct hipFuncAttributes *to, const void *function) {
    uint64_t kernel;
    struct kernel_info info;
    if (!to) return last(hipErrorInvalidValue);
    int status = host_kernel(function, &kernel);
    if (!status) status = gpu_kernel_info(kernel, &info);
    if (status) return last(status);
    memset(to, 0, sizeof(*to));
    to->sharedSizeBytes = info.local;
    to->localSizeBytes = info.scratch;
    to->maxThreadsPerBlock = (int)info.max_group;
    to->numRegs = (int)info.vgprs;
    to->maxDynamicSharedSizeBytes = 65536 - (int)info.local;
    to->ptxVersion = to->binaryVersion = 30;
    return last(hipSuccess);
}

hipError_t hipFuncSetAttribute(const void *function, hipFuncAttribute attribute, int value) {
    (void)function, (void)attribute, (void)value;
    return last(hipSuccess);
}

hipError_t hipFuncSetCacheConfig(const void *function, hipFuncCache_t config) {
    (void)function, (void)config;
    return last(hipSuccess);
}

// A compute unit has four SIMDs with 512 registers of each lane and at most eight waves, and 64 KiB of local memory.
static hipError_t active(int *to, uint64_t kernel, int block, size_t dynamic) {
    struct kernel_info info;
    if (!to || block <= 0) return last(hipErrorInvalidValue);
    int status = gpu_kernel_info(kernel, &info);
    if (status) return last(status);
    int registers = ((int)info.vgprs + 7) / 8 * 8;
    int waves_of_simd = registers > 0 && 512 / registers < 8 ? 512 / registers : 8;
    int blocks = 4 * waves_of_simd / ((block + 63) / 64);
    size_t local = info.local + dynamic;
    if (local > 0 && (int)(65536 / local) < blocks) blocks = (int)(65536 / local);
    *to = block > (int)info.max_group ? 0 : blocks;
    return last(hipSuccess);
}

static hipError_t potential(int *grid, int *block, uint64_t kernel, size_t dynamic, int limit) {
    int best = 0, most = 0;
    if (!grid || !block) return last(hipErrorInvalidValue);
    struct kernel_info info;
    int status = gpu_kernel_info(kernel, &info);
    if (status) return last(status);
    int highest = limit > 0 && limit < (int)info.max_group ? limit : (int)info.max_group;
    for (int size = highest; size > 0; size -= 64) {
        int blocks = 0;
        hipError_t error = active(&blocks, kernel, size, dynamic);
        if (error != hipSuccess) return error;
        if (blocks * size > most) most = blocks * size, best = size;
    }
    *block = best;
    *grid = best ? 4 * most / best : 0;
    return last(hipSuccess);
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *to, hipFunction_t f, int block, size_t dynamic) {
    return active(to, number(f), block, dynamic);
}
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *to, hipFunction_t f, int block, size_t dynamic,
                                                                       unsigned int flags) {
    (void)flags;
    return active(to, number(f), block, dynamic);
}
hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *block, hipFunction_t f, size_t dynamic, int limit) {
    return potential(grid, block, number(f), dynamic, limit);
}
hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, hipFunction_t f, size_t dynamic,
                                                            int limit, unsigned int flags) {
    (void)flags;
    return potential(grid, block, number(f), dynamic, limit);
}
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *to, const void *f, int block, size_t dynamic) {
    uint64_t kernel;
    int status = host_kernel(f, &kernel);
    return status ? last(status) : active(to, kernel, block, dynamic);
}
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *to, const void *f, int block, size_t dynamic,
                                                                 unsigned int flags) {
    (void)flags;
    return hipOccupancyMaxActiveBlocksPerMultiprocessor(to, f, block, dynamic);
}
hipError_t hipOccupancyMaxPotentialBlockSize(int *grid, int *block, const void *f, size_t dynamic, int limit) {
    uint64_t kernel;
    int status = host_kernel(f, &kernel);
    return status ? last(status) : potential(grid, block, kernel, dynamic, limit);
}
