// A program of ROCm 6: its properties are the longer ones, and kinds of memory have other numbers than in ROCm 5.
// Argument: a code object of vadd.hip.
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 5000

static void expect(int holds, const char *what) {
    if (holds) return;
    printf("it does not hold that %s\n", what);
    exit(1);
}
#define EXPECT(condition) expect(condition, #condition)
#define HIP(call) expect((call) == hipSuccess, #call " succeeds")

static enum hipMemoryType kind(const void *pointer) {
    hipPointerAttribute_t attributes;
    memset(&attributes, 0xff, sizeof(attributes));
    HIP(hipPointerGetAttributes(&attributes, pointer));
    return attributes.type;
}

int main(int argc, char **argv) {
    struct {
        hipDeviceProp_t properties;
        char behind[64];
    } shown;
    char behind[64];
    memset(behind, 0x5a, sizeof(behind));
    memset(&shown, 0x5a, sizeof(shown));
    HIP(hipGetDeviceProperties(&shown.properties, 0));
    EXPECT(memcmp(shown.behind, behind, sizeof(behind)) == 0);
    EXPECT(strncmp(shown.properties.gcnArchName, "gfx90a", 6) == 0);
    EXPECT(shown.properties.sharedMemPerBlockOptin == shown.properties.sharedMemPerBlock);
    int warp = 0;
    HIP(hipDeviceGetAttribute(&warp, hipDeviceAttributeWarpSize, 0));
    EXPECT(warp == 64 && shown.properties.warpSize == 64);

    float a[COUNT], b[COUNT], c[COUNT], *device[3], *pinned;
    for (int i = 0; i < COUNT; i++) {
        a[i] = (float)(i % 17);
        b[i] = (float)(i % 31);
    }
    for (int i = 0; i < 3; i++) HIP(hipMalloc((void **)&device[i], sizeof(a)));
    HIP(hipHostMalloc((void **)&pinned, sizeof(a), hipHostMallocDefault));
    EXPECT(kind(device[0]) == hipMemoryTypeDevice);
    EXPECT(kind(pinned) == hipMemoryTypeHost);
    EXPECT(kind(a) == hipMemoryTypeUnregistered);

    EXPECT(argc == 2);
    hipModule_t module;
    hipFunction_t vadd;
    HIP(hipModuleLoad(&module, argv[1]));
    HIP(hipModuleGetFunction(&vadd, module, "vadd"));
    HIP(hipMemcpy(device[0], a, sizeof(a), hipMemcpyHostToDevice));
    HIP(hipMemcpy(device[1], b, sizeof(b), hipMemcpyHostToDevice));
    unsigned count = COUNT;
    void *arguments[] = {&device[0], &device[1], &device[2], &count};
    HIP(hipModuleLaunchKernel(vadd, (COUNT + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
    HIP(hipMemcpy(c, device[2], sizeof(c), hipMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++) EXPECT(c[i] == a[i] + b[i]);
    for (int i = 0; i < 3; i++) HIP(hipFree(device[i]));
    HIP(hipHostFree(pinned));
    HIP(hipModuleUnload(module));
    printf("ok\n");
    return 0;
}
