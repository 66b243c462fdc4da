// Devices, and what they say of themselves: those of an MI210, in small.
#include "gpu.h"

static _Thread_local int device_of_thread;

int current_device(void) { return device_of_thread; }

static int known(int device) { return device >= 0 && device < gpu_device_count(); }

hipError_t hipInit(unsigned int flags) {
    if (flags != 0) return last(hipErrorInvalidValue);
    return last(gpu_device_count() > 0 ? hipSuccess : hipErrorNoDevice);
}

hipError_t hipGetDeviceCount(int *count) {
    if (!count) return last(hipErrorInvalidValue);
    *count = gpu_device_count();
    return last(*count > 0 ? hipSuccess : hipErrorNoDevice);
}

hipError_t hipSetDevice(int device) {
    if (!known(device)) return last(hipErrorInvalidDevice);
    device_of_thread = device;
    return last(hipSuccess);
}

hipError_t hipGetDevice(int *device) {
    if (!device) return last(hipErrorInvalidValue);
    if (gpu_device_count() == 0) return last(hipErrorNoDevice);
    *device = device_of_thread;
    return last(hipSuccess);
}

hipError_t hipDeviceGet(hipDevice_t *device, int ordinal) {
    if (!device || !known(ordinal)) return last(hipErrorInvalidDevice);
    *device = ordinal;
    return last(hipSuccess);
}

hipError_t hipDriverGetVersion(int *version) {
    if (!version) return last(hipErrorInvalidValue);
    *version = HIP_VERSION;
    return last(hipSuccess);
}

hipError_t hipRuntimeGetVersion(int *version) { return hipDriverGetVersion(version); }

hipError_t hipDeviceSynchronize(void) { return last(gpu_device_sync(device_of_thread)); }

hipError_t hipDeviceReset(void) { return last(gpu_device_reset(device_of_thread)); }

hipError_t hipGetDeviceProperties(hipDeviceProp_t *to, int device) {
    if (!to) return last(hipErrorInvalidValue);
    if (!known(device)) return last(hipErrorInvalidDevice);
    memset(to, 0, sizeof(*to));
    snprintf(to->name, sizeof(to->name), "test GPU %d", device);
    to->totalGlobalMem = gpu_total_memory();
    to->sharedMemPerBlock = 65536;
    to->regsPerBlock = 65536;
    to->warpSize = 64;
    to->maxThreadsPerBlock = 1024;
    for (int i = 0; i < 3; i++) to->maxThreadsDim[i] = 1024;
    for (int i = 0; i < 3; i++) to->maxGridSize[i] = 2147483647;
    to->clockRate = 1700000;
    to->memoryClockRate = 1600000;
    to->memoryBusWidth = 4096;
    to->totalConstMem = 2147483647;
    to->major = 9;
    to->minor = 0;
    to->multiProcessorCount = 4;
    to->l2CacheSize = 8388608;
    to->maxThreadsPerMultiProcessor = 2048;
    to->clockInstructionRate = 1000000;
    to->arch.hasGlobalInt32Atomics = 1;
    to->arch.hasSharedInt32Atomics = 1;
    to->arch.hasGlobalInt64Atomics = 1;
    to->arch.hasDoubles = 1;
    to->arch.hasWarpVote = 1;
    to->arch.hasWarpBallot = 1;
    to->arch.hasWarpShuffle = 1;
    to->arch.has3dGrid = 1;
    to->concurrentKernels = 1;
    to->pciBusID = gpu_bus(device);
    to->maxSharedMemoryPerMultiProcessor = 65536;
    to->canMapHostMemory = 1;
    to->gcnArch = 910;
    strcpy(to->gcnArchName, "gfx90a:sramecc+:xnack-");
    to->memPitch = 2147483647;
    to->textureAlignment = 256;
    to->texturePitchAlignment = 256;
    to->isLargeBar = 1;
    return last(hipSuccess);
}

hipError_t hipDeviceGetAttribute(int *to, hipDeviceAttribute_t attribute, int device) {
    hipDeviceProp_t p;
    if (!to) return last(hipErrorInvalidValue);
    if (hipGetDeviceProperties(&p, device) != hipSuccess) return last(hipErrorInvalidDevice);
    switch (attribute) {
        case hipDeviceAttributeMaxThreadsPerBlock: *to = p.maxThreadsPerBlock; break;
        case hipDeviceAttributeMaxBlockDimX: *to = p.maxThreadsDim[0]; break;
        case hipDeviceAttributeMaxBlockDimY: *to = p.maxThreadsDim[1]; break;
        case hipDeviceAttributeMaxBlockDimZ: *to = p.maxThreadsDim[2]; break;
        case hipDeviceAttributeMaxGridDimX: *to = p.maxGridSize[0]; break;
        case hipDeviceAttributeMaxGridDimY: *to = p.maxGridSize[1]; break;
        case hipDeviceAttributeMaxGridDimZ: *to = p.maxGridSize[2]; break;
        case hipDeviceAttributeMaxSharedMemoryPerBlock: *to = (int)p.sharedMemPerBlock; break;
        case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor: *to = (int)p.maxSharedMemoryPerMultiProcessor; break;
        case hipDeviceAttributeTotalConstantMemory: *to = (int)p.totalConstMem; break;
        case hipDeviceAttributeWarpSize: *to = p.warpSize; break;
        case hipDeviceAttributeMaxRegistersPerBlock: *to = p.regsPerBlock; break;
        case hipDeviceAttributeClockRate: *to = p.clockRate; break;
        case hipDeviceAttributeMemoryClockRate: *to = p.memoryClockRate; break;
        case hipDeviceAttributeMemoryBusWidth: *to = p.memoryBusWidth; break;
        case hipDeviceAttributeMultiprocessorCount: *to = p.multiProcessorCount; break;
        case hipDeviceAttributeL2CacheSize: *to = p.l2CacheSize; break;
        case hipDeviceAttributeMaxThreadsPerMultiProcessor: *to = p.maxThreadsPerMultiProcessor; break;
        case hipDeviceAttributeComputeCapabilityMajor: *to = p.major; break;
        case hipDeviceAttributeComputeCapabilityMinor: *to = p.minor; break;
        case hipDeviceAttributeConcurrentKernels: *to = p.concurrentKernels; break;
        case hipDeviceAttributePciBusId: *to = p.pciBusID; break;
        case hipDeviceAttributePciDeviceId: *to = p.pciDeviceID; break;
        case hipDeviceAttributePciDomainID: *to = p.pciDomainID; break;
        case hipDeviceAttributeCanMapHostMemory: *to = p.canMapHostMemory; break;
        case hipDeviceAttributeGcnArch: *to = p.gcnArch; break;
        case hipDeviceAttributeMaxPitch: *to = (int)p.memPitch; break;
        case hipDeviceAttributeTextureAlignment: *to = (int)p.textureAlignment; break;
        case hipDeviceAttributeTexturePitchAlignment: *to = (int)p.texturePitchAlignment; break;
        case hipDeviceAttributeIsLargeBar: *to = p.isLargeBar; break;
        case hipDeviceAttributeUnifiedAddressing: *to = 1; break;
        case hipDeviceAttributeIntegrated: case hipDeviceAttributeIsMultiGpuBoard: case hipDeviceAttributeComputeMode:
        case hipDeviceAttributeCooperativeLaunch: case hipDeviceAttributeCooperativeMultiDeviceLaunch:
        case hipDeviceAttributeManagedMemory: case hipDeviceAttributeConcurrentManagedAccess:
        case hipDeviceAttributeDirectManagedMemAccessFromHost: case hipDeviceAttributePageableMemoryAccess:
        case hipDeviceAttributePageableMemoryAccessUsesHostPageTables: case hipDeviceAttributeKernelExecTimeout:
        case hipDeviceAttributeEccEnabled: case hipDeviceAttributeTccDriver: case hipDeviceAttributeImageSupport:
        case hipDeviceAttributeAsicRevision: case hipDeviceAttributeFineGrainSupport: case hipDeviceAttributeMemoryPoolsSupported:
            *to = 0; break;
        default: return last(hipErrorInvalidValue);
    }
    return last(hipSuccess);
}

hipError_t hipDeviceGetName(char *name, int length, hipDevice_t device) {
    if (!name || length <= 0) return last(hipErrorInvalidValue);
    if (!known(device)) return last(hipErrorInvalidDevice);
    snprintf(name, (size_t)length, "test GPU %d", device);
    return last(hipSuccess);
}

hipError_t hipDeviceGetPCIBusId(char *id, int length, int device) {
    if (!id || length <= 0) return last(hipErrorInvalidValue);
    if (!known(device)) return last(hipErrorInvalidDevice);
    snprintf(id, (size_t)length, "0000:%02x:00.0", gpu_bus(device));
    return last(hipSuccess);
}

hipError_t hipDeviceGetByPCIBusId(int *device, const char *id) {
    unsigned domain, bus;
    if (!device || !id || sscanf(id, "%x:%x:", &domain, &bus) != 2) return last(hipErrorInvalidValue);
    for (int one = 0; domain == 0 && known(one); one++) {
        if (gpu_bus(one) != (int)bus) continue;
        *device = one;
        return last(hipSuccess);
    }
    return last(hipErrorInvalidDevice);
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
    if (!bytes) return last(hipErrorInvalidValue);
    if (!known(device)) return last(hipErrorInvalidDevice);
    *bytes = gpu_total_memory();
    return last(hipSuccess);
}

hipError_t hipDeviceComputeCapability(int *major, int *minor, hipDevice_t device) {
    if (!major || !minor) return last(hipErrorInvalidValue);
    if (!known(device)) return last(hipErrorInvalidDevice);
    *major = 9;
    *minor = 0;
    return last(hipSuccess);
}

hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer) {
    if (!can) return last(hipErrorInvalidValue);
    if (!known(device) || !known(peer)) return last(hipErrorInvalidDevice);
    *can = device != peer;
    return last(hipSuccess);
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned int flags) {
    (void)flags;
    return last(known(peer) && peer != device_of_thread ? hipSuccess : hipErrorInvalidDevice);
}

hipError_t hipSetDeviceFlags(unsigned flags) { (void)flags; return last(hipSuccess); }

hipError_t hipGetDeviceFlags(unsigned int *flags) {
    if (!flags) return last(hipErrorInvalidValue);
    *flags = hipDeviceScheduleAuto;
    return last(hipSuccess);
}

hipError_t hipMemGetInfo(size_t *free, size_t *total) {
    if (!free || !total) return last(hipErrorInvalidValue);
    *total = gpu_total_memory();
    *free = *total - gpu_used_memory(device_of_thread);
    return last(hipSuccess);
}
