// Arithmetic of whole numbers and floats of each width, by what the compiler makes of it.
#include "program.h"
#include <cmath>
#include <cstring>

__global__ void whole(int* a, unsigned* b, long long* c, unsigned long long* d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    a[i] = a[i] / (i % 37 + 1) + a[i] % 7;
    b[i] = b[i] / (unsigned)(i + 3) + b[i] % 1000u;
    c[i] = c[i] * (i - 5) + (c[i] >> 3) - (long long)(d[i] << (i & 31)) + c[i] / (i + 11);
    d[i] = d[i] > (unsigned long long)c[i] ? d[i] : (unsigned long long)c[i];
}

__global__ void branches(int* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = values[i];
    switch (v & 7) {
        case 0: v += 3; break;
        case 1: v *= 5; break;
        case 2: while (v > 100) v /= 3; break;
        case 3: v = min(v, 17); break;
        case 4: v = max(v, -4); break;
        case 5: v = __clz(v); break;
        case 6: v = (int)__brev((unsigned)v); break;
        default: v = __popc((unsigned)v);
    }
    values[i] = v;
}

__global__ void floats(float* a, double* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    a[i] = sqrtf(fabsf(a[i])) / (a[i] * a[i] + 2.0f) + floorf(a[i] * 0.3f) + fmaxf(a[i], 1.5f) - fminf(a[i], 0.25f);
    b[i] = b[i] * b[i] / 3.0 + sqrt(fabs(b[i])) + ceil(b[i] * 0.7) + fma(b[i], 1.25, -3.0);
}

__global__ void converts(signed char* a, short* b, float* c, double* d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    c[i] = (float)a[i] + (float)b[i] * 2.0f;
    d[i] = (double)c[i] + (double)(unsigned char)a[i];
    a[i] = (signed char)((int)c[i] >> 2);
    b[i] = (short)(a[i] * b[i] + (unsigned short)b[i] / 3);
}

// Halves of the device are float conversions here: the host has no type of its own for them.
__global__ void halves(float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = (float)(_Float16)(a[i] * 1.37f);
}

__global__ void curves(float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = expf(a[i] * 0.5f) + logf(a[i] * a[i] + 1.0f) + sinf(a[i]) * cosf(a[i]) + tanhf(a[i]) + powf(fabsf(a[i]), 0.3f);
}

template <typename T>
struct Buffer {
    std::vector<T> host;
    T* device = nullptr;
    explicit Buffer(size_t n) : host(n) { HIP(hipMalloc((void**)&device, n * sizeof(T))); }
    void up() { HIP(hipMemcpy(device, host.data(), host.size() * sizeof(T), hipMemcpyHostToDevice)); }
    std::vector<T> down() {
        std::vector<T> result(host.size());
        HIP(hipMemcpy(result.data(), device, host.size() * sizeof(T), hipMemcpyDeviceToHost));
        HIP(hipFree(device));
        return result;
    }
};

static std::vector<double> result, expected;

template <typename A, typename B>
void compare(const std::vector<A>& device, const std::vector<B>& host) {
    result.insert(result.end(), device.begin(), device.end());
    expected.insert(expected.end(), host.begin(), host.end());
}

// The sixteen-bit float that is nearest to a value of moderate size.
static float nearest_half(float value) {
    if (value == 0.0f) return value;
    int exponent;
    frexpf(value, &exponent);
    float step = ldexpf(1.0f, exponent - 11);
    return rintf(value / step) * step;
}

int main(int argc, char** argv) {
    size_t n = size_argument(argc, argv, 1000);
    unsigned groups = (n + 127) / 128;
    uint64_t state = 88172645463325252ull;
    auto random = [&] { state ^= state << 13; state ^= state >> 7; return state ^= state << 17; };

    Buffer<int> a(n), v(n);
    Buffer<unsigned> b(n);
    Buffer<long long> c(n);
    Buffer<unsigned long long> d(n);
    Buffer<float> f(n), cf(n), h(n), curve(n);
    Buffer<double> df(n), cd(n);
    Buffer<signed char> ca(n);
    Buffer<short> cs(n);
    for (size_t i = 0; i < n; i++) {
        a.host[i] = (int)random();
        b.host[i] = (unsigned)random();
        // No product here leaves 64 bits, which C leaves open.
        c.host[i] = (long long)(random() >> 24) - (1ll << 39);
        d.host[i] = random() >> 36;
        v.host[i] = (int)(random() % 2000) - 1000;
        f.host[i] = (float)(int)(random() % 20000) / 64.0f - 150.0f;
        df.host[i] = (double)(int)(random() % 200000) / 640.0 - 150.0;
        ca.host[i] = (signed char)random();
        cs.host[i] = (short)random();
        h.host[i] = (float)(int)(random() % 4000) / 32.0f - 60.0f;
        curve.host[i] = (float)(int)(random() % 1000) / 100.0f - 5.0f;
    }
    a.up(), b.up(), c.up(), d.up(), v.up(), f.up(), df.up(), ca.up(), cs.up(), h.up(), curve.up();
    whole<<<groups, 128>>>(a.device, b.device, c.device, d.device, (int)n);
    branches<<<groups, 128>>>(v.device, (int)n);
    floats<<<groups, 128>>>(f.device, df.device, (int)n);
    converts<<<groups, 128>>>(ca.device, cs.device, cf.device, cd.device, (int)n);
    halves<<<groups, 128>>>(h.device, (int)n);
    curves<<<groups, 128>>>(curve.device, (int)n);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());

    std::vector<float> approximate = curve.down();
    for (size_t i = 0; i < n; i++) {
        int n32 = (int)i;
        a.host[i] = a.host[i] / (n32 % 37 + 1) + a.host[i] % 7;
        b.host[i] = b.host[i] / (unsigned)(n32 + 3) + b.host[i] % 1000u;
        c.host[i] = c.host[i] * (n32 - 5) + (c.host[i] >> 3) - (long long)(d.host[i] << (n32 & 31)) + c.host[i] / (n32 + 11);
        d.host[i] = d.host[i] > (unsigned long long)c.host[i] ? d.host[i] : (unsigned long long)c.host[i];
        int w = v.host[i];
        unsigned reversed = 0;
        for (int bit = 0; bit < 32; bit++) reversed |= ((unsigned)w >> bit & 1) << (31 - bit);
        switch (w & 7) {
            case 0: w += 3; break;
            case 1: w *= 5; break;
            case 2: while (w > 100) w /= 3; break;
            case 3: w = w < 17 ? w : 17; break;
            case 4: w = w > -4 ? w : -4; break;
            case 5: w = w == 0 ? 32 : __builtin_clz((unsigned)w); break;
            case 6: w = (int)reversed; break;
            default: w = __builtin_popcount((unsigned)w);
        }
        v.host[i] = w;
        float x = f.host[i];
        // The device's compiler makes one rounding of a product and a sum, and so does this.
        f.host[i] = sqrtf(fabsf(x)) / fmaf(x, x, 2.0f) + floorf(x * 0.3f) + fmaxf(x, 1.5f) - fminf(x, 0.25f);
        double y = df.host[i];
        df.host[i] = y * y / 3.0 + sqrt(fabs(y)) + ceil(y * 0.7) + fma(y, 1.25, -3.0);
        cf.host[i] = (float)ca.host[i] + (float)cs.host[i] * 2.0f;
        cd.host[i] = (double)cf.host[i] + (double)(unsigned char)ca.host[i];
        ca.host[i] = (signed char)((int)cf.host[i] >> 2);
        cs.host[i] = (short)(ca.host[i] * cs.host[i] + (unsigned short)cs.host[i] / 3);
        h.host[i] = nearest_half(h.host[i] * 1.37f);
        double z = curve.host[i], right = exp(z * 0.5) + log(z * z + 1.0) + sin(z) * cos(z) + tanh(z) + pow(fabs(z), 0.3f);
        if (!(fabs(approximate[i] - right) <= 4e-6 * (1.0 + fabs(right)))) {
            printf("the curve at %g is %.9g in place of %.9g\n", z, (double)approximate[i], right);
            return 1;
        }
    }
    compare(a.down(), a.host), compare(b.down(), b.host), compare(c.down(), c.host), compare(d.down(), d.host);
    compare(v.down(), v.host), compare(f.down(), f.host), compare(df.down(), df.host);
    compare(ca.down(), ca.host), compare(cs.down(), cs.host), compare(cf.down(), cf.host), compare(cd.down(), cd.host);
    compare(h.down(), h.host);
    return finish(result, expected);
}
