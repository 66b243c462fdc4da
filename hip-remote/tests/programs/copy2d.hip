// Copies and fills of rows with pitches, to a device, on it and from it.
#include "program.h"

__global__ void increment(unsigned char* bytes, size_t pitch, unsigned width, unsigned height) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < width && y < height) bytes[y * pitch + x] += 3;
}

int main(int argc, char** argv) {
    size_t width = size_argument(argc, argv, 100), height = 13, host_pitch = width + 9;
    std::vector<unsigned char> in(host_pitch * height), result(host_pitch * height, 1), expected(host_pitch * height, 1);
    for (size_t i = 0; i < in.size(); i++) in[i] = (unsigned char)(i * 31 + i / 7);
    size_t half = width / 2;
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++)
            expected[y * host_pitch + x] = x < half && y < 4 ? 0xc8 : (unsigned char)(in[y * host_pitch + x] + 3);
    unsigned char *a, *b;
    size_t pitch_a, pitch_b = width + 21;
    HIP(hipMallocPitch((void**)&a, &pitch_a, width, height));
    HIP(hipMalloc((void**)&b, pitch_b * height));
    HIP(hipMemset(a, 0xee, pitch_a * height));
    HIP(hipMemcpy2D(a, pitch_a, in.data(), host_pitch, width, height, hipMemcpyHostToDevice));
    HIP(hipMemcpy2D(b, pitch_b, a, pitch_a, width, height, hipMemcpyDeviceToDevice));
    if (hipMemcpy2D(a, width - 1, in.data(), host_pitch, width, 1, hipMemcpyHostToDevice) != hipErrorInvalidPitchValue) {
        printf("a row is longer than its pitch\n");
        return 1;
    }
    increment<<<dim3((width + 63) / 64, height), 64>>>(b, pitch_b, (unsigned)width, (unsigned)height);
    HIP(hipGetLastError());
    HIP(hipMemset2D(b, pitch_b, 0xc8, half, 4));
    HIP(hipMemcpy2DAsync(result.data(), host_pitch, b, pitch_b, width, height, hipMemcpyDeviceToHost, 0));
    HIP(hipDeviceSynchronize());
    HIP(hipFree(a));
    HIP(hipFree(b));
    return finish(result, expected);
}
