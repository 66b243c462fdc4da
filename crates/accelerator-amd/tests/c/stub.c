/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider of two devices that no machine has, in today's ABI or with -DV1 in that of January 2026: what the programs
 * beside it are tried on. -DBROKEN=RULE breaks one rule, so that a test can show that the programs notice.
 */
#define _GNU_SOURCE
#include "abi.h"

#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

enum {
    NOTHING,
    /* A count above the caller's maximum. */
    COUNT,
    /* An entry behind the caller's buffer. */
    OVERRUN,
    /* A NULL pointer written to. */
    NULL_POINTER,
    PRINTS,
    LOGS_FATAL,
    /* No rule: partitions are said to be supported. */
    CAN_PARTITION,
    /* No rule: a warning of two lines at each call. */
    WARNS,
    /* 65 extra metrics. */
    EXTRA_METRICS,
    /* Two devices of one UUID. */
    TWINS,
    NO_NUL,
    /* Memory of its own behind a text's NUL. */
    LEAK,
    /* An abort in a call after AccelShutdown. */
    SHUTDOWN,
    /* A limit that is accepted, though capabilities deny it. */
    FALSE_LIMIT,
    /* The topology struct of TensorFusion's Go code where the C header's is asked for. */
    GO_TOPOLOGY,
    /* 64 bytes of a UUID read, however long it is. */
    READS_ON,
    /* A device that no one asked for, in the topology. */
    STRANGER,
    /* Not a number. */
    NAN_READING,
    /* A counter that threads change without a lock. */
    RACE,
    /* A code that ends TensorFusion's hypervisor. */
    FATAL_CODE,
    /* A call that never returns. */
    HANGS,
};

#ifndef BROKEN
#define BROKEN NOTHING
#endif

#ifdef V1
#define SYMBOL(name) name
#define INIT VirtualGPUInit
#else
#define SYMBOL(name) Accel##name
#define INIT AccelInit
#endif
#define STUB __attribute__((visibility("default")))

#define DEVICES 2

static const char *const UUIDS[DEVICES] = {"stub-a", BROKEN == TWINS ? "stub-a" : "stub-b"};
static LogCallbackFunc callback;
static bool shut_down;
static unsigned long calls;

static void text(char *to, size_t size, const char *from) {
    memset(to, 0, size);
    if (BROKEN == LEAK && strlen(from) + 9 < size) {
        memcpy(to + strlen(from) + 1, "leftover", 8);
    }
    memcpy(to, from, strlen(from));
    if (BROKEN == NO_NUL) {
        memset(to + strlen(from), 'x', size - strlen(from));
    }
}
#define TEXT(to, from) text(to, sizeof(to), from)

static void enter(void) {
    if (BROKEN == SHUTDOWN && shut_down) {
        abort();
    }
    if (BROKEN == PRINTS) {
        puts("stub: a call");
        fflush(stdout);
    }
    if (BROKEN == RACE) {
        calls++;
    }
    LogCallbackFunc log = __atomic_load_n(&callback, __ATOMIC_ACQUIRE);
    if (log != NULL) {
        if (BROKEN == WARNS) {
            log("WARN", "the stub is\nno GPU");
        }
        log(BROKEN == LOGS_FATAL ? "FATAL" : "DEBUG", "a call");
    }
}

static int find(const char *uuid) {
    char copy[UUID_STRING_LENGTH + 1] = {0};
    if (BROKEN == READS_ON) {
        uuid = memcpy(copy, uuid, UUID_STRING_LENGTH);
    }
    for (int i = 0; i < DEVICES; i++) {
        size_t length = strlen(UUIDS[i]);
        if (strnlen(uuid, UUID_STRING_LENGTH) == length && strncasecmp(uuid, UUIDS[i], length) == 0) {
            return i;
        }
    }
    return -1;
}

STUB Code INIT(void) {
    enter();
    return CODE(SUCCESS);
}

STUB Code SYMBOL(RegisterLogCallback)(LogCallbackFunc new_callback) {
    __atomic_store_n(&callback, new_callback, __ATOMIC_RELEASE);
    enter();
    return CODE(SUCCESS);
}

STUB Code SYMBOL(GetDeviceCount)(size_t *count) {
    enter();
    if (count == NULL && BROKEN != NULL_POINTER) {
        return CODE(ERROR_INVALID_PARAM);
    }
    memcpy(count, &(size_t){DEVICES}, sizeof *count);
    return CODE(SUCCESS);
}

static void fill_device(ExtendedDeviceInfo *device, int i) {
    memset(device, 0, sizeof *device);
    TEXT(device->basic.uuid, UUIDS[i]);
    TEXT(device->basic.vendor, "Stub");
    TEXT(device->basic.model, "Stub One");
    TEXT(device->basic.driverVersion, "1.0");
    device->basic.index = i;
    device->basic.numaNode = -1;
    device->basic.totalMemoryBytes = 1ULL << 34;
    device->basic.totalComputeUnits = 4;
    device->basic.maxTflops = 12.5;
    TEXT(device->props.properties[0].key, "colour");
    TEXT(device->props.properties[0].value, "green");
    device->props.count = 1;
    device->virtualizationCapabilities.supportsMetrics = true;
    device->virtualizationCapabilities.supportsPartitioning = BROKEN == CAN_PARTITION;
    device->virtualizationCapabilities.maxWorkersPerDevice = 8;
}

STUB Code SYMBOL(GetAllDevices)(ExtendedDeviceInfo *devices, size_t maximum, size_t *count) {
    enter();
    if (devices == NULL || count == NULL) {
        return CODE(ERROR_INVALID_PARAM);
    }
    if (BROKEN == FATAL_CODE && maximum < DEVICES) {
        return CODE(ERROR_RESOURCE_EXHAUSTED);
    }
    size_t given = maximum < DEVICES && BROKEN != OVERRUN ? maximum : DEVICES;
    for (size_t i = 0; i < given; i++) {
        /* By memcpy: a caller's pointer may be unaligned. */
        ExtendedDeviceInfo device;
        fill_device(&device, (int)i);
        memcpy((char *)devices + i * sizeof device, &device, sizeof device);
    }
    memcpy(count, BROKEN == COUNT ? &(size_t){DEVICES} : &given, sizeof *count);
    return CODE(SUCCESS);
}

#ifdef V1
STUB Code GetDeviceTopology(int32_t *indexes, size_t count, ExtendedDeviceTopology *topology) {
    enter();
    if (indexes == NULL || topology == NULL) {
        return CODE(ERROR_INVALID_PARAM);
    }
    ExtendedDeviceTopology *made = calloc(1, sizeof *made);
    for (size_t i = 0; i < count && i < MAX_TOPOLOGY_DEVICES; i++) {
        int32_t index;
        memcpy(&index, (char *)indexes + i * sizeof index, sizeof index);
        if (index >= 0 && index < DEVICES) {
            TEXT(made->devices[made->deviceCount].deviceUUID, UUIDS[index]);
            made->devices[made->deviceCount++].numaNode = -1;
        }
    }
    TEXT(made->topologyType, "PCIe");
    memcpy(topology, made, sizeof *made);
    free(made);
    return CODE(SUCCESS);
}

STUB bool AssignPartition(PartitionAssignment *assignment) {
    enter();
    (void)assignment;
    return false;
}

STUB bool RemovePartition(const char *template, const char *uuid) {
    enter();
    (void)template, (void)uuid;
    return false;
}

STUB Code SetMemHardLimit(const char *worker, const char *uuid, uint64_t bytes) {
    enter();
    (void)worker, (void)uuid, (void)bytes;
    return CODE(ERROR_NOT_SUPPORTED);
}

STUB Code SetComputeUnitHardLimit(const char *worker, const char *uuid, uint32_t units) {
    enter();
    (void)worker, (void)uuid, (void)units;
    return CODE(ERROR_NOT_SUPPORTED);
}

typedef ProcessArray Context;
#else
STUB Code AccelShutdown(void) {
    enter();
    __atomic_store_n(&shut_down, true, __ATOMIC_RELEASE);
    return CODE(SUCCESS);
}

/* Where the peers' fields are in an ExtendedDeviceTopology, whose nodes have `node` bytes. */
static void fill_topology(char *topology, size_t node) {
    size_t info = 72 + MAX_TOPOLOGY_DEVICES * node + sizeof(size_t);
    for (int i = 0; i < DEVICES; i++) {
        char *device = topology + (size_t)i * info;
        text(device, 64, BROKEN == STRANGER && i == 1 ? "stranger" : UUIDS[i]);
        memcpy(device + 64, &(int32_t[]){i, -1}, 2 * sizeof(int32_t));
        int peer = 1 - i;
        text(device + 72, 64, UUIDS[peer]);
        memcpy(device + 72 + 64, &(int32_t[]){peer, TOPO_LEVEL_HOST_BRIDGE}, 2 * sizeof(int32_t));
        memcpy(device + info - sizeof(size_t), &(size_t){1}, sizeof(size_t));
    }
    memcpy(topology + MAX_TOPOLOGY_DEVICES * info, &(size_t){DEVICES}, sizeof(size_t));
}

STUB Code AccelGetAllDevicesTopology(ExtendedDeviceTopology *topology) {
    enter();
    if (topology == NULL) {
        return CODE(ERROR_INVALID_PARAM);
    }
    const char *layout = getenv("ACCELERATOR_AMD_TOPOLOGY");
    bool go = BROKEN == GO_TOPOLOGY || (layout != NULL && strcmp(layout, "go") == 0);
    size_t node = go ? 80 : sizeof(DeviceTopoNode);
    memset(topology, 0, MAX_TOPOLOGY_DEVICES * (72 + MAX_TOPOLOGY_DEVICES * node + sizeof(size_t)) + sizeof(size_t));
    fill_topology((char *)topology, node);
    return CODE(SUCCESS);
}

STUB Code AccelAssignPartition(const char *template, const char *uuid, PartitionResult *result) {
    enter();
    (void)template, (void)uuid, (void)result;
    return CODE(ERROR_NOT_SUPPORTED);
}

STUB Code AccelRemovePartition(const char *template, const char *uuid) {
    enter();
    (void)template, (void)uuid;
    return CODE(ERROR_NOT_SUPPORTED);
}

STUB Code AccelSetMemHardLimit(const char *uuid, uint64_t bytes) {
    enter();
    (void)uuid, (void)bytes;
    return BROKEN == FALSE_LIMIT ? CODE(SUCCESS) : CODE(ERROR_NOT_SUPPORTED);
}

STUB Code AccelSetComputeUnitHardLimit(const char *uuid, uint32_t units) {
    enter();
    (void)uuid, (void)units;
    return CODE(ERROR_NOT_SUPPORTED);
}

typedef SnapshotContext Context;
#endif

STUB Code SYMBOL(Snapshot)(Context *context) {
    enter();
    (void)context;
    return CODE(ERROR_NOT_SUPPORTED);
}

STUB Code SYMBOL(Resume)(Context *context) {
    enter();
    (void)context;
    return CODE(ERROR_NOT_SUPPORTED);
}

STUB Code SYMBOL(GetProcessInformation)(ProcessInformation *processes, size_t maximum, size_t *count) {
    enter();
    if (processes == NULL || count == NULL) {
        return CODE(ERROR_INVALID_PARAM);
    }
    size_t given = maximum < DEVICES ? maximum : DEVICES;
    for (size_t i = 0; i < given; i++) {
        ProcessInformation process;
        memset(&process, 0, sizeof process);
        TEXT(process.processId, "4242");
        TEXT(process.deviceUUID, UUIDS[i]);
        process.computeUtilizationPercent = 25;
        process.activeSMs = 1;
        process.totalSMs = 4;
        process.memoryUsedBytes = 1ULL << 30;
        process.memoryUtilizationPercent = 6.25;
        memcpy((char *)processes + i * sizeof process, &process, sizeof process);
    }
    memcpy(count, &given, sizeof *count);
    return CODE(SUCCESS);
}

static void fill_metrics(DeviceMetrics *metrics, int i) {
    memset(metrics, 0, sizeof *metrics);
    TEXT(metrics->deviceUUID, UUIDS[i]);
    metrics->powerUsageWatts = BROKEN == NAN_READING ? __builtin_nan("") : 100.125;
    metrics->temperatureCelsius = 45;
    metrics->pcieRxBytes = 3;
    metrics->pcieTxBytes = 4;
    metrics->utilizationPercent = 50;
    metrics->memoryUsedBytes = 1ULL << 31;
    TEXT(metrics->extraMetrics[0].key, "fan_rpm");
    metrics->extraMetrics[0].value = 1200;
    metrics->extraMetricsCount = BROKEN == EXTRA_METRICS ? MAX_EXTRA_METRICS + 1 : 1;
}

STUB Code SYMBOL(GetDeviceMetrics)(const char **uuids, size_t count, DeviceMetrics *metrics) {
    enter();
    if (uuids == NULL || metrics == NULL) {
        return CODE(ERROR_INVALID_PARAM);
    }
    for (size_t i = 0; i < count; i++) {
        const char *uuid;
        memcpy(&uuid, (char *)uuids + i * sizeof uuid, sizeof uuid);
        if (uuid == NULL) {
            return CODE(ERROR_INVALID_PARAM);
        }
        int index = find(uuid);
        if (index < 0) {
            return CODE(ERROR_NOT_FOUND);
        }
        DeviceMetrics one;
        fill_metrics(&one, index);
        memcpy((char *)metrics + i * sizeof one, &one, sizeof one);
    }
    return CODE(SUCCESS);
}

STUB Code SYMBOL(GetVendorMountLibs)(Mount *mounts, size_t maximum, size_t *count) {
    enter();
    if (mounts == NULL || count == NULL) {
        return CODE(ERROR_INVALID_PARAM);
    }
    while (BROKEN == HANGS && maximum == 0) {
        pause();
    }
    size_t given = maximum < 1 ? 0 : 1;
    if (given == 1) {
        Mount mount;
        TEXT(mount.hostPath, "/opt/stub/lib");
        TEXT(mount.guestPath, "/usr/local/stub/lib");
        memcpy(mounts, &mount, sizeof mount);
    }
    memcpy(count, &given, sizeof *count);
    return CODE(SUCCESS);
}
