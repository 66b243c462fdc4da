// Calls that few programs make, old names of some included. The test links the program with the client's library of each
// release. The arguments are that release, and a file with the program's own code object.
#include "program.h"
#include <hip/hip_ext.h>
#include <cstring>

__device__ int numbers[4] = {1, 2, 3, 4};

extern "C" __global__ void fill(int* to, int value) { to[blockIdx.x * blockDim.x + threadIdx.x] = value + numbers[0]; }

static int release;

// Numbers of hipMemoryType, which ROCm 6 changed.
static hipMemoryType on_host() { return (hipMemoryType)(release == 5 ? 0 : 1); }
static hipMemoryType on_device() { return (hipMemoryType)(release == 5 ? 1 : 2); }

static void devices() {
    hipDeviceProp_t properties;
    int driver = 0;
    HIP(hipInit(0));
    HIP(hipDriverGetVersion(&driver));
    EXPECT(driver > 0);
    HIP(hipGetDeviceProperties(&properties, 0));
    char name[256];
    size_t total = 0;
    int device = -1, major = -1, minor = -1, can = -1, active = 0;
    unsigned flags = 7;
    hipUUID uuid;
    HIP(hipDeviceGet(&device, 0));
    HIP(hipDeviceGetName(name, sizeof(name), device));
    HIP(hipDeviceTotalMem(&total, device));
    HIP(hipDeviceComputeCapability(&major, &minor, device));
    // The properties of ROCm 5, which the GPU of the tests has, lack it.
    EXPECT(hipDeviceGetUuid(&uuid, device) == hipErrorNotSupported);
    EXPECT(strcmp(name, properties.name) == 0 && total == properties.totalGlobalMem);
    EXPECT(major == properties.major && minor == properties.minor);
    device = -1;
    HIP(hipChooseDevice(&device, &properties));
    HIP(hipDeviceCanAccessPeer(&can, 0, 0));
    HIP(hipDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT(device == 0 && can == 0 && flags == 0 && active == 1);
    EXPECT(hipGetStreamDeviceId(0) == 0);
    // Hints and permissions.
    HIP(hipSetDeviceFlags(hipDeviceScheduleAuto));
    HIP(hipDeviceSetCacheConfig(hipFuncCachePreferL1));
    HIP(hipDeviceSetSharedMemConfig(hipSharedMemBankSizeDefault));
    EXPECT(hipDeviceEnablePeerAccess(1, 0) == hipErrorInvalidDevice);
    // What does not go over the network is no attribute of the GPU, whatever it says at the worker.
    EXPECT(properties.canMapHostMemory == 0 && properties.isLargeBar == 0 && properties.managedMemory == 0);
    for (hipDeviceAttribute_t attribute :
         {hipDeviceAttributeCanMapHostMemory, hipDeviceAttributeIsLargeBar, hipDeviceAttributeManagedMemory,
          hipDeviceAttributeCooperativeLaunch}) {
        int value = -1;
        HIP(hipDeviceGetAttribute(&value, attribute, 0));
        EXPECT(value == 0);
    }
}

static void volumes() {
    unsigned char in[240], out[240];
    for (int i = 0; i < 240; i++) in[i] = (unsigned char)(i + 10);
    hipExtent extent = make_hipExtent(20, 3, 4);
    hipPitchedPtr device;
    HIP(hipMalloc3D(&device, extent));
    EXPECT(device.pitch >= 20 && device.xsize == 20 && device.ysize == 3);
    HIP(hipMemset3D(device, 9, extent));
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(in, 20, 20, 3);
    copy.srcPos = make_hipPos(1, 0, 1);
    copy.dstPtr = device;
    copy.dstPos = make_hipPos(2, 1, 1);
    copy.extent = make_hipExtent(10, 2, 3);
    copy.kind = hipMemcpyHostToDevice;
    HIP(hipMemcpy3D(&copy));
    copy = {};
    copy.srcPtr = device;
    copy.dstPtr = make_hipPitchedPtr(out, 20, 20, 3);
    copy.extent = extent;
    copy.kind = hipMemcpyDeviceToHost;
    HIP(hipMemcpy3DAsync(&copy, 0));
    HIP(hipDeviceSynchronize());
    for (int z = 0; z < 4; z++)
        for (int y = 0; y < 3; y++)
            for (int x = 0; x < 20; x++) {
                bool copied = x >= 2 && x < 12 && y >= 1 && z >= 1;
                EXPECT(out[(z * 3 + y) * 20 + x] == (copied ? in[(z * 3 + y - 1) * 20 + x - 1] : 9));
            }
    HIP(hipFree(device.ptr));
}

static void rows() {
    unsigned char in[60], out[60] = {};
    for (int i = 0; i < 60; i++) in[i] = (unsigned char)(i * 3);
    hipDeviceptr_t device;
    size_t pitch;
    HIP(hipMemAllocPitch(&device, &pitch, 20, 3, 4));
    HIP(hipMemset2DAsync(device, pitch, 8, 20, 3, 0));
    hip_Memcpy2D copy = {};
    copy.srcMemoryType = on_host();
    copy.srcHost = in;
    copy.srcPitch = 20;
    copy.srcXInBytes = 4;
    copy.srcY = 1;
    copy.dstMemoryType = on_device();
    copy.dstDevice = device;
    copy.dstPitch = pitch;
    copy.dstXInBytes = 5;
    copy.WidthInBytes = 10;
    copy.Height = 2;
    HIP(hipMemcpyParam2D(&copy));
    copy = {};
    copy.srcMemoryType = on_device();
    copy.srcDevice = device;
    copy.srcPitch = pitch;
    copy.dstMemoryType = on_host();
    copy.dstHost = out;
    copy.dstPitch = 20;
    copy.WidthInBytes = 20;
    copy.Height = 3;
    HIP(hipMemcpyParam2DAsync(&copy, 0));
    HIP(hipDeviceSynchronize());
    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 20; x++) {
            bool copied = x >= 5 && x < 15 && y < 2;
            EXPECT(out[y * 20 + x] == (copied ? in[(y + 1) * 20 + x - 1] : 8));
        }
    HIP(hipMemcpy(out, in, sizeof(in), hipMemcpyHostToHost));
    EXPECT(memcmp(out, in, sizeof(in)) == 0);
    HIP(hipFree(device));
}

static void fills() {
    // Fills of bytes, and copies on the device.
    char *bytes, text[8];
    HIP(hipMalloc((void**)&bytes, 16));
    HIP(hipMemsetD8Async(bytes, 'a', 8, 0));
    HIP(hipMemcpyHtoDAsync(bytes, (void*)"xy", 2, 0));
    HIP(hipMemcpyDtoDAsync(bytes + 8, bytes, 8, 0));
    HIP(hipMemcpyDtoD(bytes + 12, bytes + 8, 2));
    HIP(hipMemcpyDtoHAsync(text, bytes + 8, 8, 0));
    HIP(hipDeviceSynchronize());
    EXPECT(memcmp(text, "xyaaxyaa", 8) == 0);
    HIP(hipFree(bytes));
    unsigned short *device, result[8];
    HIP(hipMalloc((void**)&device, sizeof(result)));
    HIP(hipMemsetD16(device, 0x1234, 8));
    HIP(hipMemsetD8(device, 0x56, 2));
    HIP(hipMemsetD32(device + 6, 0x789abcde, 1));
    HIP(hipMemcpyWithStream(result, device, sizeof(result), hipMemcpyDeviceToHost, 0));
    EXPECT(result[0] == 0x5656 && result[1] == 0x1234 && result[5] == 0x1234);
    EXPECT(result[6] == 0xbcde && result[7] == 0x789a);
    HIP(hipFree(device));
}

static void variables(hipStream_t stream) {
    int values[2] = {20, 30}, back[4] = {};
    HIP(hipMemcpyToSymbolAsync(HIP_SYMBOL(numbers), values, sizeof(values), 4, hipMemcpyHostToDevice, stream));
    HIP(hipMemcpyFromSymbolAsync(back, HIP_SYMBOL(numbers), sizeof(back), 0, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    EXPECT(back[0] == 1 && back[1] == 20 && back[2] == 30 && back[3] == 4);
    EXPECT(hipMemcpyToSymbolAsync(HIP_SYMBOL(numbers), values, 8, 12, hipMemcpyHostToDevice, stream) == hipErrorInvalidValue);
}

static void pointers() {
    char *device, *start = nullptr, *same = nullptr;
    size_t size = 0, again = 0;
    unsigned type = 99;
    int ordinal = -1;
    bool managed = true;
    HIP(hipMalloc((void**)&device, 1000));
    hipDeviceptr_t within = device + 10;
    HIP(hipPointerGetAttribute(&type, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, within));
    HIP(hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, within));
    HIP(hipPointerGetAttribute(&size, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, within));
    HIP(hipPointerGetAttribute(&managed, HIP_POINTER_ATTRIBUTE_IS_MANAGED, within));
    EXPECT(type == (unsigned)on_device() && start == device && size == 1000 && !managed);
    hipPointer_attribute which[] = {HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, HIP_POINTER_ATTRIBUTE_DEVICE_POINTER};
    void* places[] = {&ordinal, &same};
    HIP(hipDrvPointerGetAttributes(2, which, places, within));
    EXPECT(ordinal == 0 && same == within);
    HIP(hipMemPtrGetInfo(device, &again));
    EXPECT(again == 1000);
    EXPECT(hipPointerGetAttribute(&size, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, &size) == hipErrorInvalidValue);
    HIP(hipFree(device));
}

static void pinned() {
    void* host;
    unsigned flags = 7;
    HIP(hipHostAlloc(&host, 100, hipHostMallocPortable));
    HIP(hipHostGetFlags(&flags, host));
    EXPECT(flags == hipHostMallocPortable);
    HIP(hipFreeHost(host));
    HIP(hipMallocHost(&host, 100));
    HIP(hipHostFree(host));
    HIP(hipMemAllocHost(&host, 100));
    HIP(hipHostFree(host));
    HIP(hipExtMallocWithFlags(&host, 100, hipDeviceMallocDefault));
    HIP(hipFree(host));
}

static int* filled;

// Whether a launch has made this of 64 values, which are 0 afterwards.
static bool all_are(int value) {
    int result[64];
    HIP(hipMemcpy(result, filled, sizeof(result), hipMemcpyDeviceToHost));
    HIP(hipMemset(filled, 0, sizeof(result)));
    // The default stream may be the thread's own, which other streams do not wait for.
    HIP(hipDeviceSynchronize());
    for (int found : result)
        if (found != value) return false;
    return true;
}

static void launches(hipStream_t stream) {
    int value = 100;
    void* parameters[] = {&filled, &value};
    HIP(hipConfigureCall(dim3(2), dim3(32), 0, 0));
    HIP(hipSetupArgument(&filled, sizeof(filled), 0));
    HIP(hipSetupArgument(&value, sizeof(value), sizeof(filled)));
    HIP(hipLaunchByPtr((const void*)fill));
    EXPECT(all_are(101));
    EXPECT(hipLaunchByPtr((const void*)fill) == hipErrorMissingConfiguration);
    hipEvent_t start, stop;
    float ms = -1;
    HIP(hipEventCreate(&start));
    HIP(hipEventCreateWithFlags(&stop, hipEventDefault));
    value = 200;
    HIP(hipExtLaunchKernel((const void*)fill, dim3(2), dim3(32), parameters, 0, stream, start, stop, 0));
    HIP(hipEventSynchronize(stop));
    HIP(hipEventQuery(start));
    HIP(hipEventElapsedTime(&ms, start, stop));
    EXPECT(all_are(201) && ms >= 0);
    HIP(hipEventDestroy(start));
    HIP(hipEventDestroy(stop));
    EXPECT(strcmp(hipKernelNameRefByPtr((const void*)fill, 0), "fill") == 0);
    HIP(hipFuncSetCacheConfig((const void*)fill, hipFuncCachePreferL1));
}

static void modules(const char* file) {
    hipModule_t module;
    hipFunction_t function;
    hipDeviceptr_t variable;
    size_t bytes = 0;
    int values[4] = {}, blocks = 0, same = 0, grid = 0, block = 0, threads = 0;
    HIP(hipModuleLoad(&module, file));
    HIP(hipModuleGetFunction(&function, module, "fill"));
    // The module's variables are its own.
    HIP(hipModuleGetGlobal(&variable, &bytes, module, "numbers"));
    HIP(hipMemcpyDtoH(values, variable, sizeof(values)));
    EXPECT(bytes == sizeof(values) && values[0] == 1 && values[1] == 2 && values[3] == 4);
    EXPECT(hipModuleGetGlobal(&variable, &bytes, module, "none") == hipErrorNotFound);
    EXPECT(hipModuleGetFunction(&function, module, "none") == hipErrorNotFound);
    EXPECT(hipModuleLoad(&module, "/none") == hipErrorFileNotFound);
    HIP(hipFuncGetAttribute(&threads, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    EXPECT(threads == 1024);
    HIP(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 64, 0));
    HIP(hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&same, (const void*)fill, 64, 0, 0));
    EXPECT(blocks >= 1 && blocks == same);
    HIP(hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, function, 0, 0));
    EXPECT(grid >= 1 && block >= 64 && block <= 1024);
    EXPECT(strcmp(hipKernelNameRef(function), "fill") == 0);
    int value = 300;
    void* parameters[] = {&filled, &value};
    HIP(hipModuleLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, 0, parameters, nullptr));
    EXPECT(all_are(301));
    // hipExtModuleLaunchKernel counts threads in place of blocks.
    value = 400;
    HIP(hipExtModuleLaunchKernel(function, 64, 1, 1, 32, 1, 1, 0, 0, parameters, nullptr, nullptr, nullptr, 0));
    EXPECT(all_are(401));
    HIP(hipModuleUnload(module));
    EXPECT(hipModuleUnload(module) != hipSuccess);
    // Which options a compiler would get does not matter.
    FILE* opened = fopen(file, "rb");
    std::vector<char> image(1 << 20);
    EXPECT(opened && fread(image.data(), 1, image.size(), opened) > 0 && feof(opened));
    fclose(opened);
    HIP(hipModuleLoadDataEx(&module, image.data(), 0, nullptr, nullptr));
    HIP(hipModuleGetFunction(&function, module, "fill"));
    HIP(hipModuleUnload(module));
}

// Each is an error that says so, and the test counts the sentences.
static void unsupported() {
    hipGraph_t graph;
    void* managed;
    for (int i = 0; i < 3; i++) EXPECT(hipGraphCreate(&graph, 0) == hipErrorNotSupported);
    EXPECT(hipGetLastError() == hipErrorNotSupported);
    EXPECT(hipMallocManaged(&managed, 16, hipMemAttachGlobal) == hipErrorNotSupported);
}

int main(int argc, char** argv) {
    if (argc < 3) {
        fprintf(stderr, "name a release and a code object\n");
        return 2;
    }
    release = atoi(argv[1]);
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    HIP(hipMalloc((void**)&filled, 64 * sizeof(int)));
    devices();
    volumes();
    rows();
    fills();
    variables(stream);
    pointers();
    pinned();
    launches(stream);
    modules(argv[2]);
    unsupported();
    HIP(hipFree(filled));
    HIP(hipStreamDestroy(stream));
    printf("ok\n");
    return 0;
}
