/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump LIBRARY [--topology c|go]
 *
 * Calls an accelerator library as TensorFusion's hypervisor does, and prints what it sees, one `key: value` a line. A
 * key is the field's path by its C names. Numbers are decimal, a double as Go's FormatFloat(value, 'f', -1, 64) has it.
 * Compiled with -DV1 it speaks the ABI of January 2026, which knows no --topology.
 *
 * Each fault goes to stderr as one line, and makes the exit code 1: a count above the maximum, a text without its NUL,
 * and bytes that are neither the caller's nor zero, which leak the library's memory. What the library logs goes there
 * as `log LEVEL: message`. A buffer that is written beyond its end, or an argument read beyond its own, kills the
 * program.
 */
#define _GNU_SOURCE
#include "abi.h"
#include "guarded.h"

#include <inttypes.h>
#include <stdarg.h>

/* As many as the hypervisor asks for. */
#define MOUNTS 64

static Provider provider;
static int faults;

__attribute__((format(printf, 1, 2))) static void fault(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("fault: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    faults++;
}

__attribute__((format(printf, 1, 2))) static const char *at(const char *format, ...) {
    static char path[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    return path;
}

static void print_text(const char *path, const char *field, const char *bytes, size_t size) {
    size_t length = strnlen(bytes, size);
    if (length == size) {
        fault("%s.%s has no NUL", path, field);
    }
    for (size_t i = length; i < size; i++) {
        if (bytes[i] != 0) {
            fault("%s.%s has the byte 0x%02x behind its NUL, at %zu", path, field, (unsigned char)bytes[i], i);
            break;
        }
    }
    printf("%s.%s: ", path, field);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        printf(byte < 0x20 || byte == 0x7f || byte == '\\' ? "\\x%02x" : "%c", byte);
    }
    putchar('\n');
}

static void print_signed(const char *path, const char *field, int64_t value) {
    printf("%s.%s: %" PRId64 "\n", path, field, value);
}

static void print_unsigned(const char *path, const char *field, uint64_t value) {
    printf("%s.%s: %" PRIu64 "\n", path, field, value);
}

static void print_double(const char *path, const char *field, double value) {
    char text[512];
    int decimals = 0;
    do {
        snprintf(text, sizeof text, "%.*f", decimals, value);
    } while (value == value && strtod(text, NULL) != value && ++decimals < 40);
    printf("%s.%s: %s\n", path, field, text);
}

/* Takes the byte, because reading a bool that is neither 0 nor 1 is undefined. */
static void print_bool(const char *path, const char *field, const void *place) {
    unsigned char byte = *(const unsigned char *)place;
    if (byte > 1) {
        fault("%s.%s is the bool %u", path, field, byte);
    }
    printf("%s.%s: %s\n", path, field, byte == 0 ? "false" : "true");
}

#define TEXT(s, field) print_text(path, #field, (s)->field, sizeof(s)->field)
#define SIGNED(s, field) print_signed(path, #field, (int64_t)(s)->field)
#define UNSIGNED(s, field) print_unsigned(path, #field, (uint64_t)(s)->field)
#define DOUBLE(s, field) print_double(path, #field, (s)->field)
#define BOOL(s, field) print_bool(path, #field, &(s)->field)

/* Bytes that the library has no value for: padding, and entries behind the last one. */
static void check_unused(const char *path, const void *from, const void *to) {
    for (const unsigned char *byte = from; byte < (const unsigned char *)to; byte++) {
        if (*byte != 0 && *byte != FILL) {
            fault("%s has the byte 0x%02x where it has no value", path, *byte);
            return;
        }
    }
}

static size_t within(const char *what, size_t count, size_t maximum) {
    if (count > maximum) {
        fault("%s is %zu, above its maximum %zu", what, count, maximum);
        return maximum;
    }
    return count;
}

/* Says whether what the call gives can be read. */
static bool succeeded(const char *function, Code code) {
    printf("%s: %d\n", function, (int)code);
    return code == CODE(SUCCESS);
}

#define CALL(function, ...) succeeded(symbols.function, provider.function(__VA_ARGS__))

static size_t *new_count(void) {
    return guarded_new(sizeof(size_t));
}

static void check_intact(const char *what, const void *buffer, size_t size) {
    if (!guarded_intact(buffer, size)) {
        fault("the library wrote before the buffer of %s", what);
    }
}

static void on_log(const char *level, const char *message) {
    fprintf(stderr, "log %s: %s\n", level, message);
    if (strcmp(level, "FATAL") == 0) {
        fault("a log level that ends TensorFusion's hypervisor");
    }
}

static void print_basic(const char *path, const DeviceBasicInfo *basic) {
    TEXT(basic, uuid);
    TEXT(basic, vendor);
    TEXT(basic, model);
    TEXT(basic, driverVersion);
    TEXT(basic, firmwareVersion);
#ifndef V1
    TEXT(basic, deviceNode);
#endif
    SIGNED(basic, index);
    SIGNED(basic, numaNode);
    UNSIGNED(basic, totalMemoryBytes);
    UNSIGNED(basic, totalComputeUnits);
    DOUBLE(basic, maxTflops);
    UNSIGNED(basic, pcieGen);
    UNSIGNED(basic, pcieWidth);
}

static void print_capabilities(const char *path, const VirtualizationCapabilities *can) {
    BOOL(can, supportsPartitioning);
    BOOL(can, supportsSoftIsolation);
    BOOL(can, supportsHardIsolation);
    BOOL(can, supportsSnapshot);
    BOOL(can, supportsMetrics);
    BOOL(can, supportsRemoting);
    check_unused(path, (const char *)&can->supportsRemoting + 1, &can->maxPartitions);
    UNSIGNED(can, maxPartitions);
    UNSIGNED(can, maxWorkersPerDevice);
}

static void print_device(size_t i, const ExtendedDeviceInfo *device) {
    print_basic(at("devices[%zu].basic", i), &device->basic);
    const DeviceProperties *props = &device->props;
    size_t count = within("props.count", props->count, MAX_DEVICE_PROPERTIES);
    for (size_t k = 0; k < count; k++) {
        const char *path = at("devices[%zu].props.properties[%zu]", i, k);
        TEXT(&props->properties[k], key);
        TEXT(&props->properties[k], value);
    }
    const char *path = at("devices[%zu].props", i);
    check_unused(path, props->properties + count, props->properties + MAX_DEVICE_PROPERTIES);
    UNSIGNED(props, count);
    print_capabilities(at("devices[%zu].virtualizationCapabilities", i), &device->virtualizationCapabilities);
}

#ifdef V1
static void dump_topology(size_t device_count) {
    int32_t *indexes = guarded_new(device_count * sizeof *indexes);
    for (size_t i = 0; i < device_count; i++) {
        indexes[i] = (int32_t)i;
    }
    ExtendedDeviceTopology *topology = guarded_new(sizeof *topology);
    if (CALL(GetTopology, indexes, device_count, topology)) {
        size_t count = within("topology.deviceCount", topology->deviceCount, device_count);
        for (size_t i = 0; i < count; i++) {
            const char *path = at("topology.devices[%zu]", i);
            TEXT(&topology->devices[i], deviceUUID);
            SIGNED(&topology->devices[i], numaNode);
        }
        const char *path = "topology";
        check_unused(path, topology->devices + count, topology->devices + MAX_TOPOLOGY_DEVICES);
        UNSIGNED(topology, deviceCount);
        TEXT(topology, topologyType);
    }
    check_intact("topology", topology, sizeof *topology);
}
#else
/* ExtendedDeviceTopology as TensorFusion's Go code has it, whose nodes have one field more than the C header's. */
typedef struct GoTopoNode {
    char peerUUID[64];
    int32_t peerIndex;
    int32_t topoLevel;
    int64_t bandwidthBytesPerSec;
} GoTopoNode;

typedef struct GoTopologyInfo {
    char deviceUUID[64];
    int32_t deviceIndex;
    int32_t numaNode;
    GoTopoNode peers[MAX_TOPOLOGY_DEVICES];
    size_t peerCount;
} GoTopologyInfo;

typedef struct GoTopology {
    GoTopologyInfo devices[MAX_TOPOLOGY_DEVICES];
    size_t deviceCount;
} GoTopology;

_Static_assert(sizeof(GoTopoNode) == 80, "Go's DeviceTopoNode");
_Static_assert(offsetof(GoTopoNode, bandwidthBytesPerSec) == 72, "Go's DeviceTopoNode");
_Static_assert(sizeof(GoTopology) == 332808, "Go's ExtendedDeviceTopology");

#define NO_MORE(node)
#define BANDWIDTH(node) SIGNED(node, bandwidthBytesPerSec)
#define DUMP_TOPOLOGY(name, Topology, more)                                                                            \
    static void name(size_t device_count) {                                                                            \
        Topology *topology = guarded_new(sizeof *topology);                                                            \
        if (CALL(GetTopology, (ExtendedDeviceTopology *)topology)) {                                                   \
            size_t count = within("topology.deviceCount", topology->deviceCount, device_count);                        \
            for (size_t i = 0; i < count; i++) {                                                                       \
                const char *path = at("topology.devices[%zu]", i);                                                     \
                TEXT(&topology->devices[i], deviceUUID);                                                               \
                SIGNED(&topology->devices[i], deviceIndex);                                                            \
                SIGNED(&topology->devices[i], numaNode);                                                               \
                size_t peers = within("peerCount", topology->devices[i].peerCount, MAX_TOPOLOGY_DEVICES);              \
                for (size_t k = 0; k < peers; k++) {                                                                   \
                    path = at("topology.devices[%zu].peers[%zu]", i, k);                                               \
                    TEXT(&topology->devices[i].peers[k], peerUUID);                                                    \
                    SIGNED(&topology->devices[i].peers[k], peerIndex);                                                 \
                    SIGNED(&topology->devices[i].peers[k], topoLevel);                                                 \
                    more(&topology->devices[i].peers[k]);                                                              \
                }                                                                                                      \
                path = at("topology.devices[%zu]", i);                                                                 \
                check_unused(path, topology->devices[i].peers + peers, &topology->devices[i].peerCount);               \
                UNSIGNED(&topology->devices[i], peerCount);                                                            \
            }                                                                                                          \
            const char *path = "topology";                                                                             \
            check_unused(path, topology->devices + count, &topology->deviceCount);                                     \
            UNSIGNED(topology, deviceCount);                                                                           \
        }                                                                                                              \
        check_intact("topology", topology, sizeof *topology);                                                          \
    }

DUMP_TOPOLOGY(dump_topology, ExtendedDeviceTopology, NO_MORE)
DUMP_TOPOLOGY(dump_go_topology, GoTopology, BANDWIDTH)
#endif

static void dump_metrics(const ExtendedDeviceInfo *devices, size_t device_count) {
    const char **uuids = guarded_new(device_count * sizeof *uuids);
    for (size_t i = 0; i < device_count; i++) {
        uuids[i] = guarded_text(devices[i].basic.uuid);
    }
    DeviceMetrics *metrics = guarded_new(device_count * sizeof *metrics);
    if (CALL(GetDeviceMetrics, uuids, device_count, metrics)) {
        for (size_t i = 0; i < device_count; i++) {
            const DeviceMetrics *one = &metrics[i];
            const char *path = at("metrics[%zu]", i);
            TEXT(one, deviceUUID);
            DOUBLE(one, powerUsageWatts);
            DOUBLE(one, temperatureCelsius);
            UNSIGNED(one, pcieRxBytes);
            UNSIGNED(one, pcieTxBytes);
            UNSIGNED(one, utilizationPercent);
            check_unused(path, &one->utilizationPercent + 1, &one->memoryUsedBytes);
            UNSIGNED(one, memoryUsedBytes);
            size_t extras = within("extraMetricsCount", one->extraMetricsCount, MAX_EXTRA_METRICS);
            for (size_t k = 0; k < extras; k++) {
                path = at("metrics[%zu].extraMetrics[%zu]", i, k);
                TEXT(&one->extraMetrics[k], key);
                DOUBLE(&one->extraMetrics[k], value);
            }
            path = at("metrics[%zu]", i);
            check_unused(path, one->extraMetrics + extras, &one->extraMetricsCount);
            UNSIGNED(one, extraMetricsCount);
        }
    }
    check_intact("metrics", metrics, device_count * sizeof *metrics);
}

static void dump_processes(void) {
    size_t *count = new_count();
    size_t size = MAX_PROCESSES * sizeof(ProcessInformation);
    ProcessInformation *processes = guarded_new(size);
    if (CALL(GetProcessInformation, processes, MAX_PROCESSES, count)) {
        printf("processInfoCount: %zu\n", *count);
        size_t known = within("processInfoCount", *count, MAX_PROCESSES);
        for (size_t i = 0; i < known; i++) {
            const char *path = at("processInfos[%zu]", i);
            TEXT(&processes[i], processId);
            TEXT(&processes[i], deviceUUID);
            DOUBLE(&processes[i], computeUtilizationPercent);
            UNSIGNED(&processes[i], activeSMs);
            UNSIGNED(&processes[i], totalSMs);
            UNSIGNED(&processes[i], memoryUsedBytes);
            UNSIGNED(&processes[i], memoryReservedBytes);
            DOUBLE(&processes[i], memoryUtilizationPercent);
        }
        check_unused("processInfos", processes + known, processes + MAX_PROCESSES);
    }
    check_intact("processInfos", processes, size);
}

static void dump_mounts(void) {
    size_t *count = new_count();
    Mount *mounts = guarded_new(MOUNTS * sizeof *mounts);
    if (CALL(GetVendorMountLibs, mounts, MOUNTS, count)) {
        printf("mountCount: %zu\n", *count);
        size_t known = within("mountCount", *count, MOUNTS);
        for (size_t i = 0; i < known; i++) {
            const char *path = at("mounts[%zu]", i);
            TEXT(&mounts[i], hostPath);
            TEXT(&mounts[i], guestPath);
        }
        check_unused("mounts", mounts + known, mounts + MOUNTS);
    }
    check_intact("mounts", mounts, MOUNTS * sizeof *mounts);
}

/* What a provider may refuse, asked of the first device. */
static void dump_refusals(const char *uuid) {
    const char *template = guarded_text("template");
#ifdef V1
    const char *worker = guarded_text("worker");
    PartitionAssignment *assignment = guarded_new(sizeof *assignment);
    memset(assignment, 0, sizeof *assignment);
    snprintf(assignment->templateId, sizeof assignment->templateId, "%s", template);
    snprintf(assignment->deviceUUID, sizeof assignment->deviceUUID, "%s", uuid);
    ProcessArray *context = guarded_new(sizeof *context);
    memset(context, 0, sizeof *context);
    snprintf(context->deviceUUID, sizeof context->deviceUUID, "%s", uuid);
    printf("AssignPartition: %s\n", provider.AssignPartition(assignment) ? "true" : "false");
    printf("RemovePartition: %s\n", provider.RemovePartition(template, uuid) ? "true" : "false");
    CALL(SetMemHardLimit, worker, uuid, 1 << 30);
    CALL(SetComputeUnitHardLimit, worker, uuid, 50);
#else
    PartitionResult *partition = guarded_new(sizeof *partition);
    SnapshotContext *context = guarded_new(sizeof *context);
    *context = (SnapshotContext){.processIds = NULL, .processCount = 0, .deviceUUID = uuid};
    CALL(AssignPartition, template, uuid, partition);
    CALL(RemovePartition, template, uuid);
    CALL(SetMemHardLimit, uuid, 1 << 30);
    CALL(SetComputeUnitHardLimit, uuid, 50);
    check_intact("partitionResult", partition, sizeof *partition);
#endif
    CALL(Snapshot, context);
    CALL(Resume, context);
}

int main(int argc, char **argv) {
    bool go = false;
    if (argc == 4 && strcmp(argv[2], "--topology") == 0) {
        go = strcmp(argv[3], "go") == 0;
        /* Before dlopen, so that a library may read it as early as it likes. */
        setenv("ACCELERATOR_AMD_TOPOLOGY", argv[3], 1);
    } else if (argc != 2) {
        fprintf(stderr, "usage: %s LIBRARY [--topology c|go]\n", argv[0]);
        return 2;
    }
    const char *error = provider_load(argv[1], &provider);
    if (error != NULL) {
        fprintf(stderr, "loading %s: %s\n", argv[1], error);
        return 1;
    }
    const char *missing = provider_lacks(&provider);
    if (missing != NULL) {
        fprintf(stderr, "%s has no %s\n", argv[1], missing);
        return 1;
    }
    CALL(RegisterLogCallback, on_log);
    CALL(Init);
    size_t *count = new_count();
    if (!CALL(GetDeviceCount, count)) {
        return 1;
    }
    printf("deviceCount: %zu\n", *count);
    size_t device_count = within("deviceCount", *count, MAX_TOPOLOGY_DEVICES);
    size_t size = device_count * sizeof(ExtendedDeviceInfo);
    ExtendedDeviceInfo *devices = guarded_new(size);
    memset(count, FILL, sizeof *count);
    if (!CALL(GetAllDevices, devices, device_count, count)) {
        return 1;
    }
    if (*count != device_count) {
        fault("GetDeviceCount says %zu devices, and GetAllDevices %zu", device_count, *count);
        device_count = within("deviceCount", *count, device_count);
    }
    for (size_t i = 0; i < device_count; i++) {
        print_device(i, &devices[i]);
    }
    check_intact("devices", devices, size);
#ifdef V1
    (void)go;
    dump_topology(device_count);
#else
    (go ? dump_go_topology : dump_topology)(device_count);
#endif
    dump_metrics(devices, device_count);
    dump_processes();
    dump_mounts();
    dump_refusals(device_count > 0 ? guarded_text(devices[0].basic.uuid) : guarded_text("gpu-0"));
#ifndef V1
    CALL(Shutdown);
#endif
    return faults > 0;
}
