// A step for each line of the standard input, so that a test decides when what happens.
#include "program.h"
#include <chrono>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

__global__ void increment(uint32_t* values, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] += 1;
}

struct Buffer {
    uint32_t* device;
    size_t bytes;
};

static std::vector<Buffer> buffers;

// What a process does that has nothing of its parent's: 0 where it is right.
static int child() {
    uint32_t value = 5, back = 0;
    void* device = nullptr;
    bool well = hipMalloc(&device, 4) == hipSuccess && hipMemcpy(device, &value, 4, hipMemcpyHostToDevice) == hipSuccess;
    return well && hipMemcpy(&back, device, 4, hipMemcpyDeviceToHost) == hipSuccess && back == value ? 0 : 1;
}

static hipError_t step(const std::string& name, std::istream& in, std::ostream& out) {
    size_t number = 0;
    in >> number;
    if (name == "count") {
        int count = -1;
        hipError_t error = hipGetDeviceCount(&count);
        out << ' ' << count;
        return error;
    }
    if (name == "malloc") {
        void* device = nullptr;
        hipError_t error = hipMalloc(&device, number);
        if (error == hipSuccess) buffers.push_back({(uint32_t*)device, number});
        out << ' ' << device;
        return error;
    }
    if (name == "memory") {
        size_t free = 0, total = 0;
        hipError_t error = hipMemGetInfo(&free, &total);
        out << ' ' << free << ' ' << total;
        return error;
    }
    if (name == "free-address") return hipFree((void*)number);
    if (name == "set-address") return hipMemset((void*)number, 1, 16);
    if (name == "device") return hipSetDevice((int)number);
    // A launch that needs no memory.
    if (name == "alone") {
        increment<<<1, 1>>>(nullptr, 0);
        return hipPeekAtLastError();
    }
    if (name == "fault") {
        increment<<<1, 1>>>((uint32_t*)16, 1);
        return hipPeekAtLastError();
    }
    if (name == "reset") return hipDeviceReset();
    if (name == "sync") return hipDeviceSynchronize();
    if (name == "last") return hipGetLastError();
    if (name == "stream") {
        hipStream_t stream;
        return hipStreamCreate(&stream);
    }
    // How many ms a fork takes while another thread connects.
    if (name == "fork-beside") {
        std::thread([] {
            int count = 0;
            (void)hipGetDeviceCount(&count);
        }).detach();
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        auto begin = std::chrono::steady_clock::now();
        pid_t pid = fork();
        if (pid == 0) _exit(0);
        waitpid(pid, nullptr, 0);
        auto time = std::chrono::steady_clock::now() - begin;
        out << ' ' << std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
        return hipSuccess;
    }
    if (name == "fork") {
        pid_t pid = fork();
        if (pid == 0) _exit(child());
        int status = -1;
        waitpid(pid, &status, 0);
        out << ' ' << status;
        return hipSuccess;
    }
    if (buffers.empty()) {
        out << " no buffer";
        return hipErrorUnknown;
    }
    Buffer last = buffers.back();
    if (name == "free") {
        buffers.pop_back();
        return hipFree(last.device);
    }
    // So many rounds of a copy to the device, a launch and a copy back: a test ends one of the processes in their midst.
    if (name == "copies") {
        std::vector<uint32_t> host(last.bytes / 4), back(last.bytes / 4);
        for (size_t round = 0; round < number; round++) {
            for (auto& value : host) value = (uint32_t)round;
            hipError_t error = hipMemcpy(last.device, host.data(), last.bytes, hipMemcpyHostToDevice);
            increment<<<(host.size() + 255) / 256, 256>>>(last.device, (unsigned)host.size());
            if (error == hipSuccess) error = hipMemcpy(back.data(), last.device, last.bytes, hipMemcpyDeviceToHost);
            if (error != hipSuccess) return error;
            for (uint32_t value : back)
                if (value != round + 1) {
                    out << " wrong";
                    return hipErrorUnknown;
                }
        }
        return hipSuccess;
    }
    // A thread waits for a kernel, and this one makes so many calls meanwhile: whether the kernel still runs after them.
    if (name == "beside") {
        hipStream_t stream;
        hipError_t error = hipStreamCreateWithFlags(&stream, hipStreamNonBlocking);
        if (error != hipSuccess) return error;
        increment<<<1, 1, 0, stream>>>(last.device, 1);
        std::thread waits([=] { (void)hipStreamSynchronize(stream); });
        size_t free = 0, total = 0;
        for (size_t i = 0; i < number && error == hipSuccess; i++) error = hipMemGetInfo(&free, &total);
        out << ' ' << (hipStreamQuery(stream) == hipErrorNotReady ? "waits" : "done");
        waits.join();
        return error;
    }
    // Calls of which none waits, and one at the end that does.
    if (name == "pipeline") {
        unsigned n = last.bytes / 4;
        uint32_t first = 0;
        hipError_t error = hipMemset(last.device, 0, last.bytes);
        for (size_t i = 0; i < number; i++) increment<<<(n + 255) / 256, 256>>>(last.device, n);
        if (error == hipSuccess) error = hipMemcpy(&first, last.device, 4, hipMemcpyDeviceToHost);
        out << ' ' << first;
        return error;
    }
    // How many ms so many rounds of calls take of which none waits, whatever the kind.
    if (name == "one-way") {
        std::vector<void*> freed(number);
        void* pinned;
        hipEvent_t event;
        for (auto& memory : freed)
            if (hipError_t error = hipMalloc(&memory, 16)) return error;
        if (hipError_t error = hipHostMalloc(&pinned, 16)) return error;
        if (hipError_t error = hipEventCreate(&event)) return error;
        char* device = (char*)last.device;
        hipError_t error = hipSuccess;
        auto expect = [&](hipError_t made) { if (error == hipSuccess) error = made; };
        auto begin = std::chrono::steady_clock::now();
        for (void* memory : freed) {
            increment<<<1, 1>>>(last.device, 1);
            expect(hipMemsetAsync(device, 1, 16));
            expect(hipMemcpyAsync(device, pinned, 16, hipMemcpyHostToDevice));
            expect(hipMemcpyAsync(device + 16, device, 16, hipMemcpyDeviceToDevice));
            expect(hipEventRecord(event));
            expect(hipStreamWaitEvent(0, event, 0));
            expect(hipFree(memory));
        }
        for (size_t round = 0; round < number; round++) expect(hipMemcpyAsync(pinned, device, 16, hipMemcpyDeviceToHost));
        auto time = std::chrono::steady_clock::now() - begin;
        out << ' ' << std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
        expect(hipHostFree(pinned));
        expect(hipEventDestroy(event));
        return error;
    }
    if (name == "launch") {
        unsigned n = number ? number : last.bytes / 4;
        increment<<<(n + 255) / 256, 256>>>(last.device, n);
        return hipPeekAtLastError();
    }
    if (name == "read") {
        uint32_t first = 0;
        hipError_t error = hipMemcpy(&first, last.device, 4, hipMemcpyDeviceToHost);
        out << ' ' << first;
        return error;
    }
    if (name == "write") {
        uint32_t first = (uint32_t)number;
        return hipMemcpy(last.device, &first, 4, hipMemcpyHostToDevice);
    }
    if (name == "set") return hipMemset(last.device, (int)number, last.bytes);
    out << " unknown step";
    return hipErrorUnknown;
}

int main() {
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream in(line);
        std::ostringstream out;
        std::string name;
        in >> name;
        auto begin = std::chrono::steady_clock::now();
        hipError_t error = step(name, in, out);
        auto time = std::chrono::steady_clock::now() - begin;
        if (name == "pipeline") out << ' ' << std::chrono::duration_cast<std::chrono::milliseconds>(time).count() << " ms";
        std::cout << hipGetErrorName(error) << out.str() << std::endl;
    }
}
