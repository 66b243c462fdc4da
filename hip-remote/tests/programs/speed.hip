// Measures HIP calls through whichever libamdhip64 the loader finds: the tests' own, or the client's.
// Prints one line of JSON for each measurement that the arguments name.

#include <hip/hip_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using Clock = std::chrono::steady_clock;

static double ns_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

static void check(hipError_t error, const char *what) {
    if (error != hipSuccess) {
        std::fprintf(stderr, "speed: %s: %s\n", what, hipGetErrorString(error));
        std::exit(1);
    }
}
#define CHECK(call) check(call, #call)

__global__ void nothing(float *) {}

static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// A call whose reply is awaited: the request has no fields, the reply has two numbers of 64 bits.
static void sync_call() {
    std::vector<double> took;
    size_t free_bytes, total;
    for (int n = 0; n < 20000; n++) {
        auto begin = Clock::now();
        CHECK(hipMemGetInfo(&free_bytes, &total));
        took.push_back(ns_since(begin));
    }
    std::printf("{\"sync_ns\": %.0f}\n", median(took));
}

// Calls whose replies nobody awaits, in bursts that a connection's buffers hold.
static void one_way_call() {
    float *data;
    CHECK(hipMalloc(&data, 4096));
    std::vector<double> launch, memset;
    const int burst = 500;
    for (int round = 0; round < 200; round++) {
        auto begin = Clock::now();
        for (int n = 0; n < burst; n++) {
            nothing<<<1, 1>>>(data);
        }
        launch.push_back(ns_since(begin) / burst);
        CHECK(hipDeviceSynchronize());
        begin = Clock::now();
        for (int n = 0; n < burst; n++) {
            CHECK(hipMemsetAsync(data, 0, 4096, 0));
        }
        memset.push_back(ns_since(begin) / burst);
        CHECK(hipDeviceSynchronize());
    }
    std::printf("{\"launch_ns\": %.0f, \"memset_ns\": %.0f}\n", median(launch), median(memset));
    CHECK(hipFree(data));
}

// Copies of `bytes`, each from its call to its end; the rate is the median copy's.
static void copies(size_t bytes) {
    char *data;
    CHECK(hipMalloc(&data, bytes));
    std::vector<char> host(bytes, 1);
    std::vector<double> to_device, to_host;
    for (int n = 0; n < 40; n++) {
        auto begin = Clock::now();
        CHECK(hipMemcpy(data, host.data(), bytes, hipMemcpyHostToDevice));
        to_device.push_back(ns_since(begin));
        begin = Clock::now();
        CHECK(hipMemcpy(host.data(), data, bytes, hipMemcpyDeviceToHost));
        to_host.push_back(ns_since(begin));
    }
    std::printf("{\"bytes\": %zu, \"h2d\": %.0f, \"d2h\": %.0f}\n", bytes, bytes / median(to_device) * 1e9,
                bytes / median(to_host) * 1e9);
    CHECK(hipFree(data));
}

// A thousand operations that depend on nothing from the host, and one wait for all of them.
static void pipeline() {
    float *data;
    CHECK(hipMalloc(&data, 1 << 20));
    nothing<<<1, 1>>>(data);
    CHECK(hipDeviceSynchronize());
    auto begin = Clock::now();
    for (int n = 0; n < 500; n++) {
        CHECK(hipMemsetAsync(data, n, 4096, 0));
        nothing<<<1, 1>>>(data);
    }
    CHECK(hipDeviceSynchronize());
    std::printf("{\"pipeline_ns\": %.0f}\n", ns_since(begin));
    CHECK(hipFree(data));
}

int main(int argc, char **argv) {
    for (int n = 1; n < argc; n++) {
        std::string what = argv[n];
        if (what == "sync") {
            sync_call();
        } else if (what == "one-way") {
            one_way_call();
        } else if (what == "pipeline") {
            pipeline();
        } else if (size_t bytes = std::strtoull(argv[n], nullptr, 10)) {
            copies(bytes);
        } else {
            std::fprintf(stderr, "speed: %s is not sync, one-way, pipeline or a number of bytes\n", argv[n]);
            return 2;
        }
        std::fflush(stdout);
    }
    return 0;
}
