/* SPDX-License-Identifier: Apache-2.0 */
/* One ABI by names that both have: TensorFusion's of today, or with -DV1 the one of January 2026. */
#ifndef ABI_H
#define ABI_H

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef V1
#include "accelerator_amd_v1.h"
typedef Result Code;
#define CODE(name) RESULT_##name
#define FUNCTIONS(F)                                                                                                   \
    F(Init, VirtualGPUInit)                                                                                            \
    F(GetDeviceCount, GetDeviceCount)                                                                                  \
    F(GetAllDevices, GetAllDevices)                                                                                    \
    F(GetTopology, GetDeviceTopology)                                                                                  \
    F(AssignPartition, AssignPartition)                                                                                \
    F(RemovePartition, RemovePartition)                                                                                \
    F(SetMemHardLimit, SetMemHardLimit)                                                                                \
    F(SetComputeUnitHardLimit, SetComputeUnitHardLimit)                                                                \
    F(Snapshot, Snapshot)                                                                                              \
    F(Resume, Resume)                                                                                                  \
    F(GetProcessInformation, GetProcessInformation)                                                                    \
    F(GetDeviceMetrics, GetDeviceMetrics)                                                                              \
    F(GetVendorMountLibs, GetVendorMountLibs)                                                                          \
    F(RegisterLogCallback, RegisterLogCallback)
#else
#include "accelerator_amd.h"
typedef AccelResult Code;
typedef MountPath Mount;
#define CODE(name) ACCEL_##name
#define FUNCTIONS(F)                                                                                                   \
    F(Init, AccelInit)                                                                                                 \
    F(Shutdown, AccelShutdown)                                                                                         \
    F(GetDeviceCount, AccelGetDeviceCount)                                                                             \
    F(GetAllDevices, AccelGetAllDevices)                                                                               \
    F(GetTopology, AccelGetAllDevicesTopology)                                                                         \
    F(AssignPartition, AccelAssignPartition)                                                                           \
    F(RemovePartition, AccelRemovePartition)                                                                           \
    F(SetMemHardLimit, AccelSetMemHardLimit)                                                                           \
    F(SetComputeUnitHardLimit, AccelSetComputeUnitHardLimit)                                                           \
    F(Snapshot, AccelSnapshot)                                                                                         \
    F(Resume, AccelResume)                                                                                             \
    F(GetProcessInformation, AccelGetProcessInformation)                                                               \
    F(GetDeviceMetrics, AccelGetDeviceMetrics)                                                                         \
    F(GetVendorMountLibs, AccelGetVendorMountLibs)                                                                     \
    F(RegisterLogCallback, AccelRegisterLogCallback)
#endif

typedef struct Provider {
#define MEMBER(member, symbol) __typeof__(&symbol) member;
    FUNCTIONS(MEMBER)
#undef MEMBER
} Provider;

/* Each function's symbol. */
typedef struct Symbols {
#define MEMBER(member, symbol) const char *member;
    FUNCTIONS(MEMBER)
#undef MEMBER
} Symbols;

static const Symbols symbols = {
#define NAME(member, symbol) .member = #symbol,
    FUNCTIONS(NAME)
#undef NAME
};

/* Loads a library as TensorFusion's hypervisor does. A function that the library lacks is NULL. */
static inline const char *provider_load(const char *path, Provider *provider) {
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        return dlerror();
    }
    void *address;
    /* ISO C has no cast from an object's pointer to a function's. */
#define FIND(member, symbol)                                                                                           \
    address = dlsym(library, #symbol);                                                                                 \
    memcpy(&provider->member, &address, sizeof address);
    FUNCTIONS(FIND)
#undef FIND
    return NULL;
}

/* The symbol of the first function that the library lacks, or NULL. */
static inline const char *provider_lacks(const Provider *provider) {
#define LACKS(member, symbol)                                                                                          \
    if (provider->member == NULL) {                                                                                    \
        return symbols.member;                                                                                         \
    }
    FUNCTIONS(LACKS)
#undef LACKS
    return NULL;
}

#endif
