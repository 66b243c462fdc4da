// Streams and events.
#include "gpu.h"

hipError_t hipStreamCreateWithPriority(hipStream_t *to, unsigned int flags, int priority) {
    uint64_t handle = 0;
    if (!to || flags & ~(unsigned)hipStreamNonBlocking) return last(hipErrorInvalidValue);
    int bounded = priority < -1 ? -1 : priority > 1 ? 1 : priority;
    int status = gpu_stream_create(current_device(), flags, bounded, &handle);
    *to = (hipStream_t)(uintptr_t)handle;
    return last(status);
}
hipError_t hipStreamCreateWithFlags(hipStream_t *to, unsigned int flags) { return hipStreamCreateWithPriority(to, flags, 0); }
hipError_t hipStreamCreate(hipStream_t *to) { return hipStreamCreateWithPriority(to, hipStreamDefault, 0); }
hipError_t hipStreamDestroy(hipStream_t stream) { return last(gpu_stream_destroy(number(stream))); }
hipError_t hipStreamSynchronize(hipStream_t stream) { return last(gpu_stream_sync(current_device(), number(stream))); }
hipError_t hipStreamQuery(hipStream_t stream) { return last(gpu_stream_query(current_device(), number(stream))); }
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags) {
    (void)flags;
    return last(gpu_stream_wait_event(current_device(), number(stream), number(event)));
}
hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int *flags) {
    if (!flags) return last(hipErrorInvalidValue);
    return last(gpu_stream_info(current_device(), number(stream), NULL, flags, NULL));
}
hipError_t hipStreamGetPriority(hipStream_t stream, int *priority) {
    if (!priority) return last(hipErrorInvalidValue);
    return last(gpu_stream_info(current_device(), number(stream), NULL, NULL, priority));
}
int hipGetStreamDeviceId(hipStream_t stream) {
    int device = -1;
    gpu_stream_info(current_device(), number(stream), &device, NULL, NULL);
    return device;
}
hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
    if (least) *least = 1;
    if (greatest) *greatest = -1;
    return last(hipSuccess);
}

hipError_t hipEventCreateWithFlags(hipEvent_t *to, unsigned flags) {
    uint64_t handle = 0;
    if (!to) return last(hipErrorInvalidValue);
    int status = gpu_event_create(flags, &handle);
    *to = (hipEvent_t)(uintptr_t)handle;
    return last(status);
}
hipError_t hipEventCreate(hipEvent_t *to) { return hipEventCreateWithFlags(to, hipEventDefault); }
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
    return last(gpu_event_record(current_device(), number(event), number(stream)));
}
hipError_t hipEventDestroy(hipEvent_t event) { return last(gpu_event_destroy(number(event))); }
hipError_t hipEventSynchronize(hipEvent_t event) { return last(gpu_event_sync(number(event))); }
hipError_t hipEventQuery(hipEvent_t event) { return last(gpu_event_query(number(event))); }
hipError_t hipEventElapsedTime(float *to, hipEvent_t start, hipEvent_t stop) {
    return last(gpu_event_elapsed(number(start), number(stop), to));
}
