// Multiplies square matrices by tiles in local memory, in work groups of two dimensions.
#include "program.h"

const unsigned TILE = 16;

__global__ void matmul(const float* a, const float* b, float* c, unsigned n) {
    __shared__ float ta[TILE][TILE], tb[TILE][TILE];
    unsigned x = threadIdx.x, y = threadIdx.y;
    unsigned column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
    float sum = 0.0f;
    for (unsigned t = 0; t < n; t += TILE) {
        ta[y][x] = row < n && t + x < n ? a[row * n + t + x] : 0.0f;
        tb[y][x] = t + y < n && column < n ? b[(t + y) * n + column] : 0.0f;
        __syncthreads();
        for (unsigned k = 0; k < TILE; k++) sum += ta[y][k] * tb[k][x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

int main(int argc, char** argv) {
    size_t n = size_argument(argc, argv, 50), bytes = n * n * sizeof(float);
    std::vector<float> a = inputs(n * n, 6), b = inputs(n * n, 7), c(n * n), expected(n * n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < n; j++) expected[i * n + j] += a[i * n + k] * b[k * n + j];
    float *da, *db, *dc;
    HIP(hipMalloc((void**)&da, bytes));
    HIP(hipMalloc((void**)&db, bytes));
    HIP(hipMalloc((void**)&dc, bytes));
    HIP(hipMemcpy(da, a.data(), bytes, hipMemcpyHostToDevice));
    HIP(hipMemcpy(db, b.data(), bytes, hipMemcpyHostToDevice));
    dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
    matmul<<<grid, dim3(TILE, TILE)>>>(da, db, dc, (unsigned)n);
    HIP(hipGetLastError());
    HIP(hipMemcpy(c.data(), dc, bytes, hipMemcpyDeviceToHost));
    HIP(hipFree(da));
    HIP(hipFree(db));
    HIP(hipFree(dc));
    return finish(c, expected);
}
