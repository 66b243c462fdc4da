// What the C files have from src/ffi.rs, and from each other. AMD's header checks each signature of HIP.
#pragma once
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct found { uint64_t start, bytes; int device, kind; unsigned flags; };
struct rows { uint64_t to, to_pitch, from, from_pitch, width, height; int kind; };
struct shape {
    uint32_t grid[3], block[3], shared;
    uint64_t stream;
    void *const *parameters;
    const void *buffer;
    uint64_t bytes, start, stop;
};
struct kernel_info { uint32_t local, scratch, sgprs, vgprs, max_group; };

int gpu_device_count(void);
int gpu_bus(int device);
uint64_t gpu_total_memory(void);
uint64_t gpu_used_memory(int device);
int gpu_healthy(int device);
int gpu_malloc(int device, uint64_t bytes, uint64_t *to);
int gpu_free(uint64_t address);
int gpu_host_malloc(int device, uint64_t bytes, unsigned flags, uint64_t *to);
int gpu_host_free(uint64_t address);
int gpu_host_register(int device, uint64_t address, uint64_t bytes, unsigned flags);
int gpu_host_unregister(uint64_t address);
int gpu_find(uint64_t address, struct found *to);
int gpu_copy(int device, uint64_t stream, const struct rows *rows, int wait);
int gpu_fill(int device, uint64_t stream, uint64_t to, uint64_t pitch, uint32_t value, uint64_t element, uint64_t width,
             uint64_t height, int wait);
int gpu_stream_create(int device, unsigned flags, int priority, uint64_t *to);
int gpu_stream_destroy(uint64_t stream);
int gpu_stream_sync(int device, uint64_t stream);
int gpu_stream_query(int device, uint64_t stream);
int gpu_stream_info(int device, uint64_t stream, int *its_device, unsigned *flags, int *priority);
int gpu_stream_wait_event(int device, uint64_t stream, uint64_t event);
int gpu_device_sync(int device);
int gpu_device_reset(int device);
int gpu_event_create(unsigned flags, uint64_t *to);
int gpu_event_destroy(uint64_t event);
int gpu_event_record(int device, uint64_t event, uint64_t stream);
int gpu_event_sync(uint64_t event);
int gpu_event_query(uint64_t event);
int gpu_event_elapsed(uint64_t start, uint64_t stop, float *to);
int gpu_module_load(int device, const void *image, uint64_t *to);
int gpu_module_unload(uint64_t module);
int gpu_module_function(uint64_t module, const char *name, uint64_t *to);
int gpu_module_global(uint64_t module, const char *name, uint64_t *address, uint64_t *bytes);
int gpu_launch(int device, uint64_t kernel, const struct shape *shape);
int gpu_kernel_info(uint64_t kernel, struct kernel_info *to);
uint64_t gpu_register_binary(uint64_t bundle);
void gpu_unregister_binary(uint64_t handle);
void gpu_register_kernel(uint64_t handle, uint64_t host, const char *name);
void gpu_register_variable(uint64_t handle, uint64_t host, const char *name);
int gpu_registered_kernel(int device, uint64_t host, uint64_t *to);
int gpu_registered_variable(int device, uint64_t host, uint64_t *address, uint64_t *bytes);
void gpu_report(void);

// The calling thread's device (device.c).
int current_device(void);
// Keeps a call's error for hipGetLastError. ROCm 5 keeps success too (status.c).
hipError_t last(int status);
// A kernel's handle by its host function (launch.c).
int host_kernel(const void *function, uint64_t *to);

static inline uint64_t number(const volatile void *pointer) { return (uint64_t)(uintptr_t)pointer; }
