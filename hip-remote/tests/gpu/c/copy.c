// Copies and fills.
#include "gpu.h"

static hipError_t rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                       int kind, hipStream_t stream, int wait) {
    struct rows rows = {number(to), to_pitch, number(from), from_pitch, width, height, kind};
    return last(gpu_copy(current_device(), number(stream), &rows, wait));
}

static hipError_t bytes(void *to, const void *from, size_t length, int kind, hipStream_t stream, int wait) {
    return rows(to, length, from, length, length, 1, kind, stream, wait);
}

hipError_t hipMemcpy(void *to, const void *from, size_t n, hipMemcpyKind kind) { return bytes(to, from, n, kind, 0, 1); }
hipError_t hipMemcpyAsync(void *to, const void *from, size_t n, hipMemcpyKind kind, hipStream_t stream) {
    return bytes(to, from, n, kind, stream, 0);
}
hipError_t hipMemcpyWithStream(void *to, const void *from, size_t n, hipMemcpyKind kind, hipStream_t stream) {
    return bytes(to, from, n, kind, stream, 1);
}
hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void *from, size_t n) { return bytes(to, from, n, hipMemcpyHostToDevice, 0, 1); }
hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t n) { return bytes(to, from, n, hipMemcpyDeviceToHost, 0, 1); }
hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t n) {
    return bytes(to, from, n, hipMemcpyDeviceToDevice, 0, 1);
}
hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void *from, size_t n, hipStream_t stream) {
    return bytes(to, from, n, hipMemcpyHostToDevice, stream, 0);
}
hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t n, hipStream_t stream) {
    return bytes(to, from, n, hipMemcpyDeviceToHost, stream, 0);
}
hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t n, hipStream_t stream) {
    return bytes(to, from, n, hipMemcpyDeviceToDevice, stream, 0);
}

static hipError_t peers(void *to, int to_device, const void *from, int from_device, size_t n, hipStream_t stream, int wait) {
    int count = gpu_device_count();
    if (to_device < 0 || to_device >= count || from_device < 0 || from_device >= count) return last(hipErrorInvalidDevice);
    return bytes(to, from, n, hipMemcpyDeviceToDevice, stream, wait);
}

hipError_t hipMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t n) {
    return peers(to, to_device, from, from_device, n, 0, 1);
}
hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t n, hipStream_t stream) {
    return peers(to, to_device, from, from_device, n, stream, 0);
}

static hipError_t checked(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                          hipMemcpyKind kind, hipStream_t stream, int wait) {
    if (width > to_pitch || width > from_pitch) return last(hipErrorInvalidPitchValue);
    return rows(to, to_pitch, from, from_pitch, width, height, kind, stream, wait);
}

hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                       hipMemcpyKind kind) {
    return checked(to, to_pitch, from, from_pitch, width, height, kind, 0, 1);
}
hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                            hipMemcpyKind kind, hipStream_t stream) {
    return checked(to, to_pitch, from, from_pitch, width, height, kind, stream, 0);
}

static hipError_t symbol(const void *host, void *other, size_t n, size_t offset, int to_symbol, int kind,
                         hipStream_t stream, int wait) {
    uint64_t address, length;
    int status = gpu_registered_variable(current_device(), number(host), &address, &length);
    if (status) return last(status == hipErrorInvalidValue ? hipErrorInvalidSymbol : status);
    if (offset > length || n > length - offset) return last(hipErrorInvalidValue);
    void *place = (void *)(uintptr_t)(address + offset);
    return to_symbol ? bytes(place, other, n, kind, stream, wait) : bytes(other, place, n, kind, stream, wait);
}

hipError_t hipMemcpyToSymbol(const void *host, const void *from, size_t n, size_t offset, hipMemcpyKind kind) {
    return symbol(host, (void *)from, n, offset, 1, kind, 0, 1);
}
hipError_t hipMemcpyToSymbolAsync(const void *host, const void *from, size_t n, size_t offset, hipMemcpyKind kind,
                                  hipStream_t stream) {
    return symbol(host, (void *)from, n, offset, 1, kind, stream, 0);
}
hipError_t hipMemcpyFromSymbol(void *to, const void *host, size_t n, size_t offset, hipMemcpyKind kind) {
    return symbol(host, to, n, offset, 0, kind, 0, 1);
}
hipError_t hipMemcpyFromSymbolAsync(void *to, const void *host, size_t n, size_t offset, hipMemcpyKind kind,
                                    hipStream_t stream) {
    return symbol(host, to, n, offset, 0, kind, stream, 0);
}
hipError_t hipGetSymbolAddress(void **to, const void *host) {
    uint64_t address, length;
    int status = gpu_registered_variable(current_device(), number(host), &address, &length);
    if (status || !to) return last(status == hipErrorInvalidValue ? hipErrorInvalidSymbol : status ? status : hipErrorInvalidValue);
    *to = (void *)(uintptr_t)address;
    return last(hipSuccess);
}
hipError_t hipGetSymbolSize(size_t *to, const void *host) {
    uint64_t address, length;
    int status = gpu_registered_variable(current_device(), number(host), &address, &length);
    if (status || !to) return last(status == hipErrorInvalidValue ? hipErrorInvalidSymbol : status ? status : hipErrorInvalidValue);
    *to = length;
    return last(hipSuccess);
}

static hipError_t fill(void *to, size_t pitch, unsigned value, size_t element, size_t width, size_t height,
                       hipStream_t stream, int wait) {
    return last(gpu_fill(current_device(), number(stream), number(to), pitch, value, element, width, height, wait));
}

hipError_t hipMemset(void *to, int value, size_t n) { return fill(to, n, (unsigned)value, 1, n, 1, 0, 1); }
hipError_t hipMemsetAsync(void *to, int value, size_t n, hipStream_t stream) {
    return fill(to, n, (unsigned)value, 1, n, 1, stream, 0);
}
hipError_t hipMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
    return fill(to, pitch, (unsigned)value, 1, width, height, 0, 1);
}
hipError_t hipMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, hipStream_t stream) {
    return fill(to, pitch, (unsigned)value, 1, width, height, stream, 0);
}
hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t n) { return fill(to, n, value, 1, n, 1, 0, 1); }
hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t n, hipStream_t stream) {
    return fill(to, n, value, 1, n, 1, stream, 0);
}
hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, size_t n) { return fill(to, 2 * n, value, 2, n, 1, 0, 1); }
hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, size_t n, hipStream_t stream) {
    return fill(to, 2 * n, value, 2, n, 1, stream, 0);
}
hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t n) { return fill(to, 4 * n, (unsigned)value, 4, n, 1, 0, 1); }
hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t n, hipStream_t stream) {
    return fill(to, 4 * n, (unsigned)value, 4, n, 1, stream, 0);
}
