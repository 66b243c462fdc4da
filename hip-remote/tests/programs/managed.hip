// A managed variable is memory that a program and its kernels reach both: a remote GPU has none.
#include "program.h"

__managed__ int variable = 5;

__global__ void read(int* to) { *to = variable; }

int main() {
    int* memory;
    HIP(hipMalloc((void**)&memory, sizeof(int)));
    read<<<1, 1>>>(memory);
    printf("%s\n", hipGetErrorName(hipGetLastError()));
    printf("%s\n", hipGetErrorName(hipDeviceSynchronize()));
    return 0;
}
