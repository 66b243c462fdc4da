// Sums each cell of a plane with its four neighbours, several times, between two buffers.
#include "program.h"
#include <utility>

__global__ void step(const float* from, float* to, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int i = y * width + x;
    float sum = from[i];
    if (x > 0) sum += from[i - 1];
    if (x < width - 1) sum += from[i + 1];
    if (y > 0) sum -= from[i - width];
    if (y < height - 1) sum -= from[i + width];
    to[i] = sum * 0.5f;
}

int main(int argc, char** argv) {
    int width = (int)size_argument(argc, argv, 70), height = width / 2 + 1;
    size_t n = (size_t)width * height, bytes = n * sizeof(float);
    std::vector<float> start = inputs(n, 8), a = start, b(n), result(n);
    for (int s = 0; s < 6; s++) {
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                int i = y * width + x;
                float sum = a[i];
                if (x > 0) sum += a[i - 1];
                if (x < width - 1) sum += a[i + 1];
                if (y > 0) sum -= a[i - width];
                if (y < height - 1) sum -= a[i + width];
                b[i] = sum * 0.5f;
            }
        std::swap(a, b);
    }
    float *da, *db;
    HIP(hipMalloc((void**)&da, bytes));
    HIP(hipMalloc((void**)&db, bytes));
    HIP(hipMemcpy(da, start.data(), bytes, hipMemcpyHostToDevice));
    for (int s = 0; s < 6; s++) {
        step<<<dim3((width + 31) / 32, (height + 3) / 4), dim3(32, 4)>>>(da, db, width, height);
        HIP(hipGetLastError());
        std::swap(da, db);
    }
    HIP(hipMemcpy(result.data(), da, bytes, hipMemcpyDeviceToHost));
    HIP(hipFree(da));
    HIP(hipFree(db));
    return finish(result, a);
}
