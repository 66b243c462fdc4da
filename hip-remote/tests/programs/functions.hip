// The compiler's device functions on bits, halves and floats, compared with those of the host.
#include "program.h"
#include <cmath>
#include <hip/hip_fp16.h>

const int BITS = 12, CURVES = 24, DOUBLES = 10, HALVES = 4;

__global__ void bits(const unsigned* in, const unsigned long long* wide, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned a = in[i], b = in[(i + 1) % n];
    unsigned long long w = wide[i];
    unsigned* to = out + i * BITS;
    to[0] = __ffs((int)a);
    to[1] = __umulhi(a, b);
    to[2] = (unsigned)__mulhi((int)a, (int)b);
    to[3] = __mul24((int)(a >> 8), (int)(b >> 8));
    to[4] = __byte_perm(a, b, 0x2461);
    to[5] = __popcll(w) + 100 * __clzll((long long)w) + 10000 * __ffsll(w);
    to[6] = (unsigned)(__umul64hi(w, w) >> 7);
    to[7] = (unsigned)(w % 1000003);
    to[8] = (a << (b & 31)) | (a >> ((32 - b) & 31));
    to[9] = (unsigned)abs((int)a) + (unsigned)(((int)a << 5) >> 9) + ((a >> 3) & 0x1ff);
    to[10] = __usad(a, b, 5u);
    to[11] = a > b ? a - b : 0;
}

__global__ void curves(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i], *to = out + i * CURVES;
    to[0] = expf(x); to[1] = logf(x); to[2] = sinf(x); to[3] = cosf(x); to[4] = tanf(x); to[5] = tanhf(x);
    to[6] = cbrtf(x); to[7] = fmodf(x, 0.7f); to[8] = erff(x); to[9] = atan2f(x, 2.0f); to[10] = asinf(x / 10.0f);
    to[11] = exp2f(x); to[12] = log2f(x); to[13] = log10f(x); to[14] = roundf(x); to[15] = rintf(x * 3.0f);
    to[16] = rsqrtf(x); to[17] = hypotf(x, 3.0f); to[18] = ldexpf(x, -7); to[19] = powf(x, 2.7f); to[20] = truncf(-x);
    to[21] = ceilf(x * 1.1f); to[22] = sinf(x * 1e5f); to[23] = 1.0f / (x * 1e-30f);
}

__global__ void doubles(const float* in, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = (double)in[i], *to = out + i * DOUBLES;
    to[0] = exp(x); to[1] = log(x); to[2] = sin(x); to[3] = pow(x, 1.7); to[4] = cbrt(x); to[5] = fmod(x, 0.7);
    to[6] = rint(x * 7.0) + floor(-x); to[7] = erf(x); to[8] = atan2(x, 2.0); to[9] = x / 3e-200 * 1e-200;
}

__global__ void halves(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half a = __float2half(in[i]), b = __float2half(0.25f);
    __half2 pair = __hfma2(__halves2half2(a, b), __halves2half2(b, a), __halves2half2(a, a));
    float* to = out + i * HALVES;
    to[0] = __low2float(pair);
    to[1] = __high2float(pair);
    to[2] = __half2float(__hadd(a, b));
    to[3] = __half2float(hsqrt(a));
}

static bool close(double device, double host, double tolerance) {
    return fabs(device - host) <= tolerance * (1.0 + fabs(host)) || device == host;
}

int main(int argc, char** argv) {
    size_t n = size_argument(argc, argv, 500);
    std::vector<unsigned> in(n), bits_out(n * BITS), expected;
    std::vector<unsigned long long> wide(n);
    std::vector<float> x(n), curves_out(n * CURVES), halves_out(n * HALVES);
    std::vector<double> doubles_out(n * DOUBLES);
    uint64_t state = 1234567890123456789ull;
    auto random = [&] { state ^= state << 13; state ^= state >> 7; return state ^= state << 17; };
    for (size_t i = 0; i < n; i++) {
        in[i] = (unsigned)(random() >> (random() % 33));
        wide[i] = (random() >> random() % 60) | 1;
        x[i] = (float)(random() % 5000 + 1) / 640.0f;
    }
    unsigned *din, *dbits;
    unsigned long long* dwide;
    float *dx, *dcurves, *dhalves;
    double* ddoubles;
    HIP(hipMalloc((void**)&din, n * 4));
    HIP(hipMalloc((void**)&dwide, n * 8));
    HIP(hipMalloc((void**)&dbits, n * BITS * 4));
    HIP(hipMalloc((void**)&dx, n * 4));
    HIP(hipMalloc((void**)&dcurves, n * CURVES * 4));
    HIP(hipMalloc((void**)&dhalves, n * HALVES * 4));
    HIP(hipMalloc((void**)&ddoubles, n * DOUBLES * 8));
    HIP(hipMemcpy(din, in.data(), n * 4, hipMemcpyHostToDevice));
    HIP(hipMemcpy(dwide, wide.data(), n * 8, hipMemcpyHostToDevice));
    HIP(hipMemcpy(dx, x.data(), n * 4, hipMemcpyHostToDevice));
    unsigned groups = (n + 63) / 64;
    bits<<<groups, 64>>>(din, dwide, dbits, (int)n);
    curves<<<groups, 64>>>(dx, dcurves, (int)n);
    doubles<<<groups, 64>>>(dx, ddoubles, (int)n);
    halves<<<groups, 64>>>(dx, dhalves, (int)n);
    HIP(hipGetLastError());
    HIP(hipMemcpy(bits_out.data(), dbits, n * BITS * 4, hipMemcpyDeviceToHost));
    HIP(hipMemcpy(curves_out.data(), dcurves, n * CURVES * 4, hipMemcpyDeviceToHost));
    HIP(hipMemcpy(doubles_out.data(), ddoubles, n * DOUBLES * 8, hipMemcpyDeviceToHost));
    HIP(hipMemcpy(halves_out.data(), dhalves, n * HALVES * 4, hipMemcpyDeviceToHost));
    for (void* pointer : {(void*)din, (void*)dwide, (void*)dbits, (void*)dx, (void*)dcurves, (void*)dhalves, (void*)ddoubles}) HIP(hipFree(pointer));
    for (size_t i = 0; i < n; i++) {
        unsigned a = in[i], b = in[(i + 1) % n];
        unsigned long long w = wide[i];
        unsigned char bytes[8];
        for (int k = 0; k < 4; k++) bytes[k] = (unsigned char)(a >> 8 * k), bytes[4 + k] = (unsigned char)(b >> 8 * k);
        unsigned right[BITS] = {
            (unsigned)__builtin_ffs((int)a),
            (unsigned)((unsigned long long)a * b >> 32),
            (unsigned)((long long)(int)a * (int)b >> 32),
            (unsigned)((((int)(a >> 8) << 8) >> 8) * (long long)(((int)(b >> 8) << 8) >> 8)),
            (unsigned)(bytes[1] | bytes[6] << 8 | bytes[4] << 16 | (unsigned)bytes[2] << 24),
            (unsigned)(__builtin_popcountll(w) + 100 * __builtin_clzll(w) + 10000 * __builtin_ffsll((long long)w)),
            (unsigned)((unsigned long long)((unsigned __int128)w * w >> 64) >> 7),
            (unsigned)(w % 1000003),
            (a << (b & 31)) | (a >> ((32 - b) & 31)),
            (unsigned)((int)a < 0 ? 0u - a : a) + (unsigned)((int)(a << 5) >> 9) + ((a >> 3) & 0x1ff),
            (a > b ? a - b : b - a) + 5u,
            a > b ? a - b : 0,
        };
        expected.insert(expected.end(), right, right + BITS);
        float f = x[i];
        double d = f;
        double curve[CURVES] = {exp(d), log(d), sin(d), cos(d), tan(d), tanh(d), cbrt(d), fmodf(f, 0.7f), erf(d), atan2(d, 2.0), asin(f / 10.0f),
                                exp2(d), log2(d), log10(d), roundf(f), rintf(f * 3.0f), 1.0 / sqrt(d), hypot(d, 3.0), ldexp(d, -7), pow(d, 2.7f), trunc(-d),
                                ceilf(f * 1.1f), sin((double)(f * 1e5f)), 1.0f / (f * 1e-30f)};
        double exact[DOUBLES] = {exp(d), log(d), sin(d), pow(d, 1.7), cbrt(d), fmod(d, 0.7), rint(d * 7.0) + floor(-d), erf(d), atan2(d, 2.0), d / 3e-200 * 1e-200};
        for (int k = 0; k < CURVES; k++)
            if (!close(curves_out[i * CURVES + k], curve[k], 2e-6)) {
                printf("curve %d at %g is %.9g in place of %.9g\n", k, d, (double)curves_out[i * CURVES + k], curve[k]);
                return 1;
            }
        for (int k = 0; k < DOUBLES; k++)
            if (!close(doubles_out[i * DOUBLES + k], exact[k], 1e-14)) {
                printf("double %d at %g is %.17g in place of %.17g\n", k, d, doubles_out[i * DOUBLES + k], exact[k]);
                return 1;
            }
        double half[HALVES] = {d * 0.25 + d, d * 0.25 + d, d + 0.25, sqrt(d)};
        for (int k = 0; k < HALVES; k++)
            if (!close(halves_out[i * HALVES + k], half[k], 2e-3)) {
                printf("half %d at %g is %.9g in place of %.9g\n", k, d, (double)halves_out[i * HALVES + k], half[k]);
                return 1;
            }
    }
    return finish(bits_out, expected);
}
