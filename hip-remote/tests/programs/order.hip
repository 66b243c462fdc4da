// The null stream and blocking streams wait for each other; a stream that does not block waits for neither. Only a GPU
// whose launches are slow shows the difference: TEST_GPU_SLOW_MS=50.
#include "program.h"

__global__ void add(int* x, int value) { *x = *x * 3 + value; }

static void expect(bool holds, const char* what) {
    if (holds) return;
    printf("it does not hold that %s\n", what);
    exit(1);
}

int main() {
    int *x, *y, *z;
    hipStream_t blocking, other, free_stream;
    HIP(hipMalloc((void**)&x, 3 * sizeof(int)));
    y = x + 1;
    z = x + 2;
    HIP(hipMemset(x, 0, 3 * sizeof(int)));
    HIP(hipStreamCreate(&blocking));
    HIP(hipStreamCreate(&other));
    HIP(hipStreamCreateWithFlags(&free_stream, hipStreamNonBlocking));
    // In order: ((0*3+1)*3+2)*3+4 = 19.
    add<<<1, 1, 0, blocking>>>(x, 1);
    add<<<1, 1>>>(x, 2);
    add<<<1, 1, 0, other>>>(x, 4);
    expect(hipStreamQuery(other) == hipErrorNotReady, "a stream works while the null stream before it does");
    add<<<1, 1, 0, free_stream>>>(y, 5);
    int result = 0;
    HIP(hipMemcpyAsync(&result, y, sizeof(int), hipMemcpyDeviceToHost, free_stream));
    HIP(hipStreamSynchronize(free_stream));
    expect(result == 5, "a stream that does not block gives its result");
    expect(hipStreamQuery(other) == hipErrorNotReady, "a stream that does not block is ahead of three launches");
    HIP(hipMemcpy(&result, x, sizeof(int), hipMemcpyDeviceToHost));
    expect(result == 19, "the null stream's copy comes after all three launches");

    hipEvent_t event, never;
    HIP(hipEventCreate(&event));
    HIP(hipEventCreate(&never));
    HIP(hipEventQuery(never));
    add<<<1, 1, 0, free_stream>>>(z, 7);
    HIP(hipEventRecord(event, free_stream));
    expect(hipEventQuery(event) == hipErrorNotReady, "an event comes after the launch before it");
    float milliseconds;
    expect(hipEventElapsedTime(&milliseconds, event, event) == hipErrorNotReady, "an event that has not come has no time");
    HIP(hipEventSynchronize(event));
    HIP(hipEventElapsedTime(&milliseconds, event, event));
    expect(hipEventElapsedTime(&milliseconds, never, event) == hipErrorInvalidHandle, "an event without a record has no time");
    // hipFree waits for the device, so that the launch before it has its memory.
    add<<<1, 1, 0, free_stream>>>(z, 7);
    HIP(hipFree(x));
    HIP(hipDeviceSynchronize());
    HIP(hipEventDestroy(event));
    HIP(hipEventDestroy(never));
    HIP(hipStreamDestroy(blocking));
    HIP(hipStreamDestroy(other));
    HIP(hipStreamDestroy(free_stream));
    printf("ok\n");
    return 0;
}
