// Loads a code object from a file and launches its vadd, once by pointers and once by a buffer of arguments. Prints the
// operands and results, so that whoever changed the code object sees what became of them.
#include "program.h"
#include <cstring>

int main(int argc, char** argv) {
    if (argc < 2) {
        fprintf(stderr, "name a code object that has a kernel vadd\n");
        return 2;
    }
    size_t n = argc > 2 ? strtoull(argv[2], nullptr, 10) : 300, bytes = n * sizeof(float);
    std::vector<float> a = inputs(n, 1), b = inputs(n, 2), by_pointers(n), by_buffer(n);
    hipModule_t module;
    hipFunction_t function;
    HIP(hipModuleLoad(&module, argv[1]));
    HIP(hipModuleGetFunction(&function, module, "vadd"));
    float *da, *db, *dc;
    HIP(hipMalloc((void**)&da, bytes));
    HIP(hipMalloc((void**)&db, bytes));
    HIP(hipMalloc((void**)&dc, bytes));
    HIP(hipMemcpyHtoD((hipDeviceptr_t)da, a.data(), bytes));
    HIP(hipMemcpyHtoD((hipDeviceptr_t)db, b.data(), bytes));
    unsigned count = (unsigned)n;
    void* parameters[] = {&da, &db, &dc, &count};
    HIP(hipModuleLaunchKernel(function, (n + 63) / 64, 1, 1, 64, 1, 1, 0, 0, parameters, nullptr));
    HIP(hipMemcpyDtoH(by_pointers.data(), (hipDeviceptr_t)dc, bytes));
    HIP(hipMemset(dc, 0, bytes));
    struct { float *a, *b, *c; unsigned n; } buffer = {da, db, dc, count};
    size_t size = sizeof(buffer);
    void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &buffer, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size, HIP_LAUNCH_PARAM_END};
    HIP(hipModuleLaunchKernel(function, (n + 63) / 64, 1, 1, 64, 1, 1, 0, 0, nullptr, extra));
    HIP(hipMemcpyDtoH(by_buffer.data(), (hipDeviceptr_t)dc, bytes));
    HIP(hipFree(da));
    HIP(hipFree(db));
    HIP(hipFree(dc));
    HIP(hipModuleUnload(module));
    if (memcmp(by_pointers.data(), by_buffer.data(), bytes) != 0) {
        printf("the launches by pointers and by a buffer differ\n");
        return 1;
    }
    for (size_t i = 0; i < n; i++) printf("%g %g %g\n", (double)a[i], (double)b[i], (double)by_buffer[i]);
    return 0;
}
