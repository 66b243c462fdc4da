// What hipcc's programs register before main, and launches.
#include "gpu.h"

// The compiler's wrapper of a fat binary (clang, CGCUDANV.cpp). No header has it, nor the functions that take it.
struct wrapper { unsigned magic, version; const void *binary; void *unused; };

void **__hipRegisterFatBinary(const void *data) {
    const struct wrapper *wrapper = data;
    return wrapper->magic == 0x48495046 ? (void **)(uintptr_t)gpu_register_binary(number(wrapper->binary)) : NULL;
}

void __hipUnregisterFatBinary(void **binary) { gpu_unregister_binary(number(binary)); }

void __hipRegisterFunction(void **binary, const void *host, char *name, const char *device_name, unsigned limit,
                           void *thread, void *block, void *block_size, void *grid_size, int *warp) {
    (void)name, (void)limit, (void)thread, (void)block, (void)block_size, (void)grid_size, (void)warp;
    gpu_register_kernel(number(binary), number(host), device_name);
}

void __hipRegisterVar(void **binary, void *host, char *name, char *device_name, int external, size_t bytes, int constant,
                      int global) {
    (void)name, (void)external, (void)bytes, (void)constant, (void)global;
    gpu_register_variable(number(binary), number(host), device_name);
}

int host_kernel(const void *function, uint64_t *to) { return gpu_registered_kernel(current_device(), number(function), to); }

struct configuration { dim3 grid, block; size_t shared; hipStream_t stream; };

// hipcc pushes one configuration and pops it in the stub of the kernel: one is enough for each thread.
static _Thread_local struct configuration configuration;

hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, hipStream_t stream) {
    configuration = (struct configuration){grid, block, shared, stream};
    return hipSuccess;
}

hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, hipStream_t *stream) {
    *grid = configuration.grid;
    *block = configuration.block;
    *shared = configuration.shared;
    *stream = configuration.stream;
    return hipSuccess;
}

static hipError_t launch_host(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                              hipStream_t stream, hipEvent_t start, hipEvent_t stop) {
    uint64_t kernel;
    int status = host_kernel(function, &kernel);
    if (status) return last(status);
    struct shape shape = {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, (uint32_t)shared, number(stream),
                          arguments, NULL, 0, number(start), number(stop)};
    status = gpu_launch(current_device(), kernel, &shape);
    return last(status == hipErrorInvalidValue ? hipErrorInvalidConfiguration : status);
}

hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, hipStream_t stream) {
    return launch_host(function, grid, block, arguments, shared, stream, NULL, NULL);
}

hipError_t hipExtLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                              hipStream_t stream, hipEvent_t start, hipEvent_t stop, int flags) {
    (void)flags;
    return launch_host(function, grid, block, arguments, shared, stream, start, stop);
}

hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned shared, hipStream_t stream, void **parameters, void **extra) {
    struct shape shape = {{gx, gy, gz}, {bx, by, bz}, shared, number(stream), parameters, NULL, 0, 0, 0};
    for (; extra && *extra != HIP_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == HIP_LAUNCH_PARAM_BUFFER_POINTER) shape.buffer = extra[1];
        else if (extra[0] == HIP_LAUNCH_PARAM_BUFFER_SIZE) shape.bytes = *(size_t *)extra[1];
        else return last(hipErrorInvalidValue);
    }
    if (parameters && shape.buffer) return last(hipErrorInvalidValue);
    return last(gpu_launch(current_device(), number(f), &shape));
}
