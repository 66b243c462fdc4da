// Errors: the last one of each thread, and their names.
#include "gpu.h"

_Static_assert(hipErrorInvalidValue == 1 && hipErrorOutOfMemory == 2 && hipErrorInvalidDevicePointer == 17, "src/status.rs");
_Static_assert(hipErrorInvalidDeviceFunction == 98 && hipErrorInvalidDevice == 101 && hipErrorInvalidImage == 200, "src/status.rs");
_Static_assert(hipErrorNoBinaryForGpu == 209 && hipErrorInvalidHandle == 400 && hipErrorNotFound == 500, "src/status.rs");
_Static_assert(hipErrorNotReady == 600 && hipErrorIllegalAddress == 700 && hipErrorLaunchFailure == 719, "src/status.rs");
_Static_assert(hipErrorHostMemoryAlreadyRegistered == 712 && hipErrorHostMemoryNotRegistered == 713, "src/status.rs");

static _Thread_local int last_status;

hipError_t last(int status) { return (hipError_t)(last_status = status); }

hipError_t hipGetLastError(void) {
    hipError_t error = (hipError_t)last_status;
    last_status = hipSuccess;
    return error;
}

hipError_t hipPeekAtLastError(void) { return (hipError_t)last_status; }

const char *hipGetErrorName(hipError_t error) {
    switch (error) {
#define NAME(name) case name: return #name;
        NAME(hipSuccess) NAME(hipErrorInvalidValue) NAME(hipErrorOutOfMemory) NAME(hipErrorNotInitialized)
        NAME(hipErrorDeinitialized) NAME(hipErrorInvalidConfiguration) NAME(hipErrorInvalidSymbol)
        NAME(hipErrorInvalidDevicePointer) NAME(hipErrorInvalidMemcpyDirection) NAME(hipErrorInvalidDeviceFunction)
        NAME(hipErrorNoDevice) NAME(hipErrorInvalidDevice) NAME(hipErrorInvalidImage) NAME(hipErrorNoBinaryForGpu)
        NAME(hipErrorFileNotFound) NAME(hipErrorInvalidHandle) NAME(hipErrorNotFound) NAME(hipErrorNotReady)
        NAME(hipErrorIllegalAddress) NAME(hipErrorHostMemoryAlreadyRegistered) NAME(hipErrorHostMemoryNotRegistered)
        NAME(hipErrorLaunchFailure) NAME(hipErrorNotSupported) NAME(hipErrorUnknown)
#undef NAME
        default: return "hipErrorUnknown";
    }
}

const char *hipGetErrorString(hipError_t error) { return hipGetErrorName(error); }

__attribute__((destructor)) static void report(void) { gpu_report(); }
