// What each program of the tests needs: its size, its inputs, and an end that says whether the result is right.
#pragma once
#include <hip/hip_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Ends the program with the error's name, so that a test sees which call failed and how.
#define HIP(call)                                                                          \
    do {                                                                                   \
        hipError_t error = (call);                                                         \
        if (error != hipSuccess) {                                                         \
            fprintf(stderr, "%s: %s (%d)\n", #call, hipGetErrorName(error), (int)error);   \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

// Ends the program with what does not hold.
#define EXPECT(condition)                                          \
    do {                                                           \
        if (!(condition)) {                                        \
            printf("it does not hold that %s\n", #condition);      \
            exit(1);                                               \
        }                                                          \
    } while (0)

inline size_t size_argument(int argc, char** argv, size_t otherwise) {
    return argc > 1 ? strtoull(argv[1], nullptr, 10) : otherwise;
}

// Inputs are small whole numbers, so that sums of floats are exact in whatever order they are made.
inline float input(size_t i, unsigned seed) {
    uint32_t x = (uint32_t)i * 2654435761u + seed * 40503u;
    x ^= x >> 13;
    return (float)(int)(x % 17u) - 8.0f;
}

inline std::vector<float> inputs(size_t count, unsigned seed) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; i++) values[i] = input(i, seed);
    return values;
}

inline uint64_t checksum(const void* data, size_t bytes) {
    uint64_t hash = 14695981039346656037ull;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const unsigned char*)data)[i]) * 1099511628211ull;
    return hash;
}

// Prints "ok" or the first difference, and the checksum of the result.
template <typename T>
int finish(const std::vector<T>& result, const std::vector<T>& expected) {
    unsigned long long sum = checksum(result.data(), result.size() * sizeof(T));
    if (result.size() != expected.size()) {
        printf("wrong length %zu, checksum %016llx\n", result.size(), sum);
        return 1;
    }
    for (size_t i = 0; i < result.size(); i++) {
        if (result[i] != expected[i]) {
            printf("wrong at %zu: %g in place of %g, checksum %016llx\n", i, (double)result[i], (double)expected[i], sum);
            return 1;
        }
    }
    printf("ok %016llx\n", sum);
    return 0;
}
