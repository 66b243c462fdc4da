// What the releases of ROCm do differently, and what each thread has of its own. The test links the program with the client's
// library of each release, names that release, and makes each launch of the GPU slow.
#include "program.h"
#include <cstring>
#include <future>
#include <thread>

// The header of 5.2.3 does not have it, nor does the library of ROCm 5.
extern "C" __attribute__((weak)) hipError_t hipGetDevicePropertiesR0600(void* properties, int device);

// hipStreamLegacy of 6.2's header.
static const hipStream_t legacy = (hipStream_t)1;

__global__ void add(int* to, int value) { *to += value; }

static int release;

// A failure is the last error until the next call, or in ROCm 7 until somebody takes it.
static void errors() {
    int count;
    EXPECT(hipMalloc(nullptr, 4) == hipErrorInvalidValue);
    EXPECT(hipPeekAtLastError() == hipErrorInvalidValue);
    std::thread([] { EXPECT(hipPeekAtLastError() == hipSuccess); }).join();
    HIP(hipGetDeviceCount(&count));
    EXPECT(hipGetLastError() == (release < 7 ? hipSuccess : hipErrorInvalidValue));
    EXPECT(hipGetLastError() == hipSuccess);
}

// driver_types.h of ROCm 6 numbers the kinds of memory anew.
static void kinds() {
    int *pinned, *device, own;
    hipPointerAttribute_t found;
    HIP(hipHostMalloc((void**)&pinned, 64, 0));
    HIP(hipMalloc((void**)&device, 64));
    HIP(hipPointerGetAttributes(&found, pinned));
    EXPECT((int)found.memoryType == (release == 5 ? 0 : 1));
    HIP(hipPointerGetAttributes(&found, device));
    EXPECT((int)found.memoryType == (release == 5 ? 1 : 2));
    EXPECT(hipPointerGetAttributes(&found, &own) == (release == 5 ? hipErrorInvalidValue : hipSuccess));
    EXPECT(release == 5 || (int)found.memoryType == 0);
    HIP(hipHostFree(pinned));
    HIP(hipFree(device));
}

// hip_runtime_api.h of 6.4.3 has the name at 0, totalGlobalMem at 288, warpSize at 308 and gcnArchName at 1160 of 1472 bytes.
static void properties() {
    hipDeviceProp_t old;
    HIP(hipGetDeviceProperties(&old, 0));
    EXPECT((hipGetDevicePropertiesR0600 != nullptr) == (release > 5));
    if (hipGetDevicePropertiesR0600 == nullptr) return;
    char bytes[1472];
    HIP(hipGetDevicePropertiesR0600(bytes, 0));
    EXPECT(strcmp(old.name, bytes) == 0);
    EXPECT(memcmp(&old.totalGlobalMem, bytes + 288, 8) == 0);
    EXPECT(memcmp(&old.warpSize, bytes + 308, 4) == 0);
    EXPECT(strncmp(old.gcnArchName, "gfx", 3) == 0 && strcmp(old.gcnArchName, bytes + 1160) == 0);
}

// Two threads, of which one has a kernel under way in its own stream.
static void threads() {
    int *slow, *quick, value = 0;
    HIP(hipMalloc((void**)&slow, sizeof(int)));
    HIP(hipMalloc((void**)&quick, sizeof(int)));
    HIP(hipMemset(slow, 0, sizeof(int)));
    HIP(hipDeviceSynchronize());
    std::promise<void> launched, looked;
    std::thread other([&] {
        add<<<1, 1, 0, hipStreamPerThread>>>(slow, 5);
        EXPECT(hipStreamQuery(hipStreamPerThread) == hipErrorNotReady);
        launched.set_value();
        looked.get_future().wait();
        EXPECT(hipStreamQuery_spt(0) == hipErrorNotReady);
        HIP(hipStreamSynchronize(hipStreamPerThread));
        EXPECT(hipStreamQuery_spt(0) == hipSuccess);
    });
    launched.get_future().wait();
    HIP(hipStreamQuery(hipStreamPerThread));
    HIP(hipStreamQuery_spt(0));
    HIP(hipMemcpyAsync_spt(quick, &release, sizeof(int), hipMemcpyHostToDevice, 0));
    HIP(hipMemcpyAsync(&value, quick, sizeof(int), hipMemcpyDeviceToHost, hipStreamPerThread));
    HIP(hipStreamSynchronize_spt(0));
    EXPECT(value == release);
    looked.set_value();
    other.join();
    HIP(hipMemcpy(&value, slow, sizeof(int), hipMemcpyDeviceToHost));
    EXPECT(value == 5);

    // The null stream has two names, and neither is the thread's stream.
    add<<<1, 1, 0, legacy>>>(slow, 6);
    HIP(hipGetLastError());
    EXPECT(hipStreamQuery(0) == hipErrorNotReady);
    EXPECT(hipGetLastError() == (release < 7 ? hipErrorNotReady : hipSuccess));
    EXPECT(hipStreamQuery(legacy) == hipErrorNotReady);
    HIP(hipStreamQuery(hipStreamPerThread));
    HIP(hipStreamSynchronize(legacy));
    HIP(hipStreamQuery(0));
    HIP(hipMemcpy_spt(&value, slow, sizeof(int), hipMemcpyDeviceToHost));
    EXPECT(value == 11);
    HIP(hipFree(slow));
    HIP(hipFree(quick));
}

int main(int argc, char** argv) {
    release = (int)size_argument(argc, argv, 0);
    errors();
    kinds();
    properties();
    threads();
    printf("ok\n");
    return 0;
}
