/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_accelerator LIBRARY
 *
 * Asks a provider of TensorFusion's accelerator ABI (since 8cdb639b) whether it keeps the ABI's rules, on whatever
 * devices this machine has. Each check runs in a process of its own, which loads the library anew: a provider that
 * crashes, hangs or prints fails that check alone. Every buffer has a guard page behind it.
 *
 * Prints `ok NAME`, `ok NAME # SKIP reason` or `not ok NAME: reason` a line, then `N passed, M skipped, K failed`. What
 * the library logs as a warning or an error stands once as `# message` before the check that heard it first. The exit
 * code is 1 if a check failed.
 */
#define _GNU_SOURCE
#include "abi.h"
#include "guarded.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <strings.h>
#include <sys/wait.h>

/* TensorFusion's hypervisor calls from one loop: a provider that takes longer holds up every device. */
#ifndef SECONDS_A_CHECK
#define SECONDS_A_CHECK 20
#endif

/* Written to by a check's process, read by the parent: a line that says why the check failed or was skipped. */
static int verdict;

static Provider provider;
static const char *library;
static int fatal_logs;
static int logs;

__attribute__((format(printf, 2, 3), noreturn)) static void conclude(const char *how, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int length = snprintf(text, sizeof text, "%s", how);
    length += vsnprintf(text + length, sizeof text - (size_t)length, format, arguments);
    va_end(arguments);
    if (write(verdict, text, strlen(text)) < 0) {
        _exit(3);
    }
    _exit(1);
}

#define fail(...) conclude("F", __VA_ARGS__)
#define skip(...) conclude("S", __VA_ARGS__)
#define require(condition, ...)                                                                                        \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fail(__VA_ARGS__);                                                                                         \
        }                                                                                                              \
    } while (0)

static const char *name_of(Code code) {
    static const char *const names[] = {
        "SUCCESS",   "INVALID_PARAM", "NOT_FOUND", "NOT_SUPPORTED", "RESOURCE_EXHAUSTED", "OPERATION_FAILED",
        "INTERNAL",
    };
    return (unsigned)code < sizeof names / sizeof *names ? names[code] : "a code that the ABI does not have";
}

#define require_code(call, wanted)                                                                                     \
    do {                                                                                                               \
        Code code_ = (call);                                                                                           \
        require(code_ == CODE(wanted), "%s is %s", #call, name_of(code_));                                             \
    } while (0)

static void judge(const char *call, Code code, bool caller_is_wrong) {
    bool mild = code == CODE(SUCCESS) || code == CODE(ERROR_NOT_FOUND) || code == CODE(ERROR_NOT_SUPPORTED);
    bool refused = caller_is_wrong && code == CODE(ERROR_INVALID_PARAM);
    require(mild || refused, "%s is %s", call, name_of(code));
}

/* A call that may be refused for what is not there or not supported: a correct call needs no other code. */
#define require_mild(call) judge(#call, call, false)

/* A caller's mistake: it may be refused as one, too. */
#define require_mild_or_invalid(call) judge(#call, call, true)

/* Each warning once, as a line. The checks' processes add to them, and the parent prints them. */
#define WARNINGS 65536
static char *warnings;

static void keep_warning(const char *message) {
    char line[512];
    int length = snprintf(line, sizeof line, "# %.500s\n", message);
    for (int i = 0; i + 1 < length; i++) {
        if ((unsigned char)line[i] < ' ') {
            line[i] = ' ';
        }
    }
    size_t end = strlen(warnings);
    if (strstr(warnings, line) == NULL && end + (size_t)length < WARNINGS) {
        memcpy(warnings + end, line, (size_t)length + 1);
    }
}

static void on_log(const char *level, const char *message) {
    logs++;
    if (level == NULL || message == NULL || strcasecmp(level, "FATAL") == 0) {
        fatal_logs++;
    } else if (strcasecmp(level, "WARN") == 0 || strcasecmp(level, "ERROR") == 0) {
        keep_warning(message);
    }
}

/* What the checks know of the devices. */
static size_t device_count;
static ExtendedDeviceInfo *devices;

static void *zeroed(size_t size) {
    return memset(guarded_new(size), 0, size);
}

static size_t *new_count(void) {
    return guarded_new(sizeof(size_t));
}

/* What most checks begin with, as the hypervisor does. */
static void start(void) {
    provider.RegisterLogCallback(on_log);
    require_code(provider.Init(), SUCCESS);
}

static void discover(void) {
    start();
    size_t *count = new_count();
    require_code(provider.GetDeviceCount(count), SUCCESS);
    require(*count <= MAX_TOPOLOGY_DEVICES, "GetDeviceCount gives %zu, above %d", *count, MAX_TOPOLOGY_DEVICES);
    device_count = *count;
    devices = guarded_new(device_count * sizeof *devices);
    require_code(provider.GetAllDevices(devices, device_count, count), SUCCESS);
    require(*count == device_count, "GetDeviceCount gives %zu, and GetAllDevices %zu", device_count, *count);
    for (size_t i = 0; i < device_count; i++) {
        const char *uuid = devices[i].basic.uuid;
        require(strnlen(uuid, UUID_STRING_LENGTH) < UUID_STRING_LENGTH, "device %zu: its uuid has no NUL", i);
    }
}

static void discover_some(void) {
    discover();
    if (device_count == 0) {
        skip("no device");
    }
}

static bool is_known(const char *uuid) {
    for (size_t i = 0; i < device_count; i++) {
        if (strncasecmp(uuid, devices[i].basic.uuid, UUID_STRING_LENGTH) == 0) {
            return true;
        }
    }
    return false;
}

static const char **all_uuids(void) {
    const char **uuids = guarded_new(device_count * sizeof *uuids);
    for (size_t i = 0; i < device_count; i++) {
        uuids[i] = guarded_text(devices[i].basic.uuid);
    }
    return uuids;
}

#define require_text(what, i, s, field)                                                                                \
    require(strnlen((s).field, sizeof((s).field)) < sizeof((s).field), "%s %zu: %s has no NUL", what, (size_t)(i),     \
            #field)

#define require_filled(what, i, s, field)                                                                              \
    do {                                                                                                               \
        require_text(what, i, s, field);                                                                               \
        require((s).field[0] != '\0', "%s %zu: %s is empty", what, (size_t)(i), #field);                               \
    } while (0)

static bool is_percent(double value) {
    return isfinite(value) && value >= 0 && value <= 100;
}

/* An array whose bytes are the caller's or zero behind a text's NUL: others were the provider's memory. */
static void require_no_leftovers(const char *what, const char *bytes, size_t size) {
    for (size_t i = strnlen(bytes, size); i < size; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        require(byte == 0 || byte == FILL, "%s has the byte 0x%02x behind its NUL", what, byte);
    }
}

/* Life and death. */

static void init_succeeds(void) {
    require_code(provider.Init(), SUCCESS);
}

static void init_twice_succeeds(void) {
    require_code(provider.Init(), SUCCESS);
    require_code(provider.Init(), SUCCESS);
}

static void shutdown_succeeds(void) {
    start();
    require_code(provider.Shutdown(), SUCCESS);
}

static void shutdown_before_init_and_twice_is_survived(void) {
    require_mild(provider.Shutdown());
    require_mild(provider.Shutdown());
    start();
    require_mild(provider.Shutdown());
    require_mild(provider.Shutdown());
}

static void init_after_shutdown_finds_the_devices_again(void) {
    discover();
    require_code(provider.Shutdown(), SUCCESS);
    require_code(provider.Init(), SUCCESS);
    size_t *count = new_count();
    require_code(provider.GetDeviceCount(count), SUCCESS);
    require(*count == device_count, "%zu devices before AccelShutdown, and %zu after it", device_count, *count);
}

/* Calls every function once with what a careful caller passes, and takes every code. */
static void call_everything(void) {
    size_t *count = new_count();
    void *many = guarded_new(MAX_TOPOLOGY_DEVICES * sizeof(ExtendedDeviceInfo));
    const char **uuids = guarded_new(sizeof *uuids);
    uuids[0] = guarded_text("gpu-0");
    const char *template = guarded_text("template");
    SnapshotContext *context = guarded_new(sizeof *context);
    *context = (SnapshotContext){.processIds = NULL, .processCount = 0, .deviceUUID = uuids[0]};
    *count = 0;
    provider.GetDeviceCount(count);
    require(*count <= MAX_TOPOLOGY_DEVICES, "GetDeviceCount gives %zu", *count);
    *count = 0;
    provider.GetAllDevices(many, MAX_TOPOLOGY_DEVICES, count);
    require(*count <= MAX_TOPOLOGY_DEVICES, "GetAllDevices gives %zu", *count);
    provider.GetTopology(zeroed(sizeof(ExtendedDeviceTopology)));
    provider.AssignPartition(template, uuids[0], guarded_new(sizeof(PartitionResult)));
    provider.RemovePartition(template, uuids[0]);
    provider.SetMemHardLimit(uuids[0], 1 << 30);
    provider.SetComputeUnitHardLimit(uuids[0], 50);
    provider.Snapshot(context);
    provider.Resume(context);
    *count = 0;
    provider.GetProcessInformation(guarded_new(MAX_PROCESSES * sizeof(ProcessInformation)), MAX_PROCESSES, count);
    require(*count <= MAX_PROCESSES, "GetProcessInformation gives %zu", *count);
    provider.GetDeviceMetrics(uuids, 1, guarded_new(sizeof(DeviceMetrics)));
    *count = 0;
    provider.GetVendorMountLibs(guarded_new(64 * sizeof(Mount)), 64, count);
    require(*count <= 64, "GetVendorMountLibs gives %zu", *count);
}

static void every_call_before_init_is_survived(void) {
    call_everything();
}

static void every_call_after_shutdown_is_survived(void) {
    start();
    require_mild(provider.Shutdown());
    call_everything();
}

/* Devices. */

static void devices_are_described(void) {
    discover_some();
    for (size_t i = 0; i < device_count; i++) {
        const DeviceBasicInfo *basic = &devices[i].basic;
        require_filled("device", i, *basic, uuid);
        require_filled("device", i, *basic, vendor);
        require_filled("device", i, *basic, model);
        require_text("device", i, *basic, driverVersion);
        require_text("device", i, *basic, firmwareVersion);
        require_text("device", i, *basic, deviceNode);
        require(basic->index == (int32_t)i, "device %zu has the index %d", i, (int)basic->index);
        require(basic->numaNode >= -1, "device %zu is on the NUMA node %d", i, (int)basic->numaNode);
        double tflops = basic->maxTflops;
        require(isfinite(tflops) && tflops >= 0, "device %zu: maxTflops is %g", i, tflops);
        const DeviceProperties *props = &devices[i].props;
        require(props->count <= MAX_DEVICE_PROPERTIES, "device %zu has %zu properties", i, props->count);
        for (size_t k = 0; k < props->count; k++) {
            require_filled("property", k, props->properties[k], key);
            require_text("property", k, props->properties[k], value);
        }
        const VirtualizationCapabilities *can = &devices[i].virtualizationCapabilities;
        const unsigned char *flags = (const unsigned char *)&can->supportsPartitioning;
        for (size_t k = 0; k < 6; k++) {
            require(flags[k] <= 1, "device %zu: capability %zu is the bool %u", i, k, flags[k]);
        }
    }
}

static void uuids_are_distinct_and_stable(void) {
    discover_some();
    for (size_t i = 0; i < device_count; i++) {
        for (size_t k = 0; k < i; k++) {
            bool twins = strcasecmp(devices[i].basic.uuid, devices[k].basic.uuid) == 0;
            require(!twins, "devices %zu and %zu are both %s", k, i, devices[i].basic.uuid);
        }
    }
    size_t *count = new_count();
    ExtendedDeviceInfo *again = guarded_new(device_count * sizeof *again);
    require_code(provider.GetAllDevices(again, device_count, count), SUCCESS);
    require(*count == device_count, "%zu devices at first, then %zu", device_count, *count);
    for (size_t i = 0; i < device_count; i++) {
        bool stable = strncmp(devices[i].basic.uuid, again[i].basic.uuid, UUID_STRING_LENGTH) == 0;
        require(stable, "device %zu was %s", i, devices[i].basic.uuid);
    }
}

static void texts_have_nothing_behind_their_nul(void) {
    discover_some();
    for (size_t i = 0; i < device_count; i++) {
        const DeviceBasicInfo *basic = &devices[i].basic;
        require_no_leftovers("uuid", basic->uuid, sizeof basic->uuid);
        require_no_leftovers("vendor", basic->vendor, sizeof basic->vendor);
        require_no_leftovers("model", basic->model, sizeof basic->model);
        require_no_leftovers("driverVersion", basic->driverVersion, sizeof basic->driverVersion);
        require_no_leftovers("firmwareVersion", basic->firmwareVersion, sizeof basic->firmwareVersion);
        require_no_leftovers("deviceNode", basic->deviceNode, sizeof basic->deviceNode);
    }
}

static void devices_in_a_buffer_of(size_t maximum) {
    size_t *count = new_count();
    size_t size = maximum * sizeof(ExtendedDeviceInfo);
    ExtendedDeviceInfo *few = guarded_new(size);
    *count = 0;
    require_mild_or_invalid(provider.GetAllDevices(few, maximum, count));
    require(*count <= maximum, "GetAllDevices gives %zu devices for a maximum of %zu", *count, maximum);
    require(guarded_intact(few, size), "GetAllDevices wrote before the buffer");
}

static void devices_in_a_larger_buffer(void) {
    discover();
    size_t *count = new_count();
    ExtendedDeviceInfo *many = guarded_new(MAX_TOPOLOGY_DEVICES * sizeof *many);
    require_code(provider.GetAllDevices(many, MAX_TOPOLOGY_DEVICES, count), SUCCESS);
    require(*count == device_count, "%zu devices in a larger buffer, not %zu", *count, device_count);
}

static void devices_in_a_too_small_buffer(void) {
    discover();
    if (device_count < 2) {
        skip("fewer than two devices");
    }
    devices_in_a_buffer_of(device_count - 1);
    devices_in_a_buffer_of(1);
}

static void devices_in_no_buffer(void) {
    start();
    devices_in_a_buffer_of(0);
}

static void no_place_for_the_device_count(void) {
    start();
    require_code(provider.GetDeviceCount(NULL), ERROR_INVALID_PARAM);
}

static void no_place_for_devices(void) {
    start();
    require_code(provider.GetAllDevices(NULL, 4, new_count()), ERROR_INVALID_PARAM);
}

static void no_place_for_the_number_of_devices(void) {
    start();
    require_code(provider.GetAllDevices(guarded_new(4 * sizeof(ExtendedDeviceInfo)), 4, NULL), ERROR_INVALID_PARAM);
}

/* Topology. */

static void topology_names_the_devices(void) {
    discover();
    ExtendedDeviceTopology *topology = zeroed(sizeof *topology);
    Code code = provider.GetTopology(topology);
    if (code == CODE(ERROR_NOT_SUPPORTED)) {
        skip("not supported");
    }
    require(code == CODE(SUCCESS), "AccelGetAllDevicesTopology is %s", name_of(code));
    require(topology->deviceCount == device_count, "%zu devices, not %zu: the Go side's layout?", topology->deviceCount,
            device_count);
    for (size_t i = 0; i < device_count; i++) {
        const DeviceTopologyInfo *device = &topology->devices[i];
        require_filled("device", i, *device, deviceUUID);
        require(is_known(device->deviceUUID), "device %zu is %s, which is no device", i, device->deviceUUID);
        require(device->peerCount <= MAX_TOPOLOGY_DEVICES, "device %zu has %zu peers", i, device->peerCount);
        for (size_t k = 0; k < device->peerCount; k++) {
            const DeviceTopoNode *peer = &device->peers[k];
            require_filled("peer", k, *peer, peerUUID);
            require(is_known(peer->peerUUID), "peer %zu of device %zu is %s, which is no device", k, i, peer->peerUUID);
            require((unsigned)peer->topoLevel <= TOPO_LEVEL_UNKNOWN, "peer %zu of device %zu has the level %d", k, i,
                    (int)peer->topoLevel);
            bool itself = strcasecmp(device->deviceUUID, peer->peerUUID) == 0;
            bool says_itself = peer->topoLevel == TOPO_LEVEL_SELF;
            require(itself == says_itself, "peer %zu of device %zu has the level %d", k, i, (int)peer->topoLevel);
        }
    }
}

static const DeviceTopoNode *peer_of(const ExtendedDeviceTopology *topology, const char *from, const char *to) {
    for (size_t i = 0; i < topology->deviceCount; i++) {
        const DeviceTopologyInfo *device = &topology->devices[i];
        for (size_t k = 0; k < device->peerCount && strcasecmp(device->deviceUUID, from) == 0; k++) {
            if (strcasecmp(device->peers[k].peerUUID, to) == 0) {
                return &device->peers[k];
            }
        }
    }
    return NULL;
}

static void topology_is_the_same_from_both_ends(void) {
    topology_names_the_devices();
    ExtendedDeviceTopology *topology = zeroed(sizeof *topology);
    require_code(provider.GetTopology(topology), SUCCESS);
    for (size_t i = 0; i < device_count; i++) {
        for (size_t k = 0; k < i; k++) {
            const char *a = devices[i].basic.uuid, *b = devices[k].basic.uuid;
            const DeviceTopoNode *there = peer_of(topology, a, b), *back = peer_of(topology, b, a);
            require((there == NULL) == (back == NULL), "%s knows %s in one direction only", a, b);
            require(there == NULL || there->topoLevel == back->topoLevel, "%s and %s differ about their level", a, b);
        }
    }
}

static void no_place_for_the_topology(void) {
    start();
    require_code(provider.GetTopology(NULL), ERROR_INVALID_PARAM);
}

/* Metrics. */

/* What TensorFusion's hypervisor writes itself: an extra metric of this name is one field twice. */
static const char *const BUILT_IN[] = {
    "rx",          "tx", "temperature", "memory_bytes", "memory_percentage", "compute_percentage", "compute_tflops",
    "power_usage",
};

static void require_sound_metrics(size_t i, const DeviceMetrics *metrics, uint64_t memory) {
    require_filled("metrics", i, *metrics, deviceUUID);
    double power = metrics->powerUsageWatts, temperature = metrics->temperatureCelsius;
    require(isfinite(power) && power >= 0, "metrics %zu: the power is %g W", i, power);
    require(isfinite(temperature), "metrics %zu: the temperature is %g", i, temperature);
    require(metrics->utilizationPercent <= 100, "metrics %zu: %u %% used", i, (unsigned)metrics->utilizationPercent);
    bool fits = memory == 0 || metrics->memoryUsedBytes <= memory;
    require(fits, "metrics %zu: %llu bytes used", i, (unsigned long long)metrics->memoryUsedBytes);
    size_t extras = metrics->extraMetricsCount;
    require(extras <= MAX_EXTRA_METRICS, "metrics %zu: %zu extra metrics", i, extras);
    for (size_t k = 0; k < extras; k++) {
        const ExtraMetric *extra = &metrics->extraMetrics[k];
        require_filled("extra metric", k, *extra, key);
        require(isfinite(extra->value), "%s is %g", extra->key, extra->value);
        for (size_t name = 0; name < sizeof BUILT_IN / sizeof *BUILT_IN; name++) {
            require(strcmp(extra->key, BUILT_IN[name]) != 0, "%s is a name of the hypervisor's own", extra->key);
        }
        for (size_t other = 0; other < k; other++) {
            require(strcmp(extra->key, metrics->extraMetrics[other].key) != 0, "%s is there twice", extra->key);
        }
    }
}

static void metrics_of_every_device(void) {
    discover_some();
    const char **uuids = all_uuids();
    DeviceMetrics *metrics = guarded_new(device_count * sizeof *metrics);
    require_code(provider.GetDeviceMetrics(uuids, device_count, metrics), SUCCESS);
    for (size_t i = 0; i < device_count; i++) {
        require_sound_metrics(i, &metrics[i], devices[i].basic.totalMemoryBytes);
        bool asked = strcasecmp(metrics[i].deviceUUID, uuids[i]) == 0;
        require(asked, "metrics %zu are of %s, not of %s", i, metrics[i].deviceUUID, uuids[i]);
    }
}

static void metrics_of_one_device(void) {
    discover_some();
    size_t last = device_count - 1;
    const char **uuids = guarded_new(sizeof *uuids);
    uuids[0] = guarded_text(devices[last].basic.uuid);
    DeviceMetrics *metrics = guarded_new(sizeof *metrics);
    require_code(provider.GetDeviceMetrics(uuids, 1, metrics), SUCCESS);
    require_sound_metrics(last, metrics, devices[last].basic.totalMemoryBytes);
    require(strcasecmp(metrics->deviceUUID, uuids[0]) == 0, "metrics of %s", metrics->deviceUUID);
}

static void metrics_of_no_device(void) {
    start();
    require_mild_or_invalid(provider.GetDeviceMetrics(guarded_new(0), 0, guarded_new(0)));
}

static void metrics_of_more_than_64(void) {
    discover_some();
    size_t asked = MAX_DEVICE_UUIDS + 1;
    const char **uuids = guarded_new(asked * sizeof *uuids);
    for (size_t i = 0; i < asked; i++) {
        uuids[i] = devices[i % device_count].basic.uuid;
    }
    require_mild_or_invalid(provider.GetDeviceMetrics(uuids, asked, guarded_new(asked * sizeof(DeviceMetrics))));
}

static void metrics_of(const char *uuid) {
    const char **uuids = guarded_new(sizeof *uuids);
    uuids[0] = uuid;
    require_mild_or_invalid(provider.GetDeviceMetrics(uuids, 1, guarded_new(sizeof(DeviceMetrics))));
}

static void metrics_of_an_unknown_uuid(void) {
    start();
    metrics_of(guarded_text("no-such-device"));
}

static void metrics_of_an_empty_uuid(void) {
    start();
    metrics_of(guarded_text(""));
}

static void metrics_of_a_uuid_without_nul(void) {
    start();
    metrics_of(memset(guarded_new(UUID_STRING_LENGTH), 'g', UUID_STRING_LENGTH));
}

static void metrics_of_a_uuid_that_is_not_utf_8(void) {
    start();
    metrics_of(guarded_text("gpu-\xff\xfe\x80"));
}

static void metrics_of_a_null_uuid(void) {
    start();
    const char **uuids = guarded_new(sizeof *uuids);
    uuids[0] = NULL;
    require_code(provider.GetDeviceMetrics(uuids, 1, guarded_new(sizeof(DeviceMetrics))), ERROR_INVALID_PARAM);
}

static void no_uuids_for_metrics(void) {
    start();
    require_code(provider.GetDeviceMetrics(NULL, 1, guarded_new(sizeof(DeviceMetrics))), ERROR_INVALID_PARAM);
}

static void no_place_for_metrics(void) {
    start();
    const char **uuids = guarded_new(sizeof *uuids);
    uuids[0] = guarded_text("gpu-0");
    require_code(provider.GetDeviceMetrics(uuids, 1, NULL), ERROR_INVALID_PARAM);
}

/* Processes. */

static void processes_are_described(void) {
    discover();
    size_t *count = new_count();
    ProcessInformation *processes = guarded_new(MAX_PROCESSES * sizeof *processes);
    Code code = provider.GetProcessInformation(processes, MAX_PROCESSES, count);
    if (code == CODE(ERROR_NOT_SUPPORTED)) {
        skip("not supported");
    }
    require(code == CODE(SUCCESS), "AccelGetProcessInformation is %s", name_of(code));
    require(*count <= MAX_PROCESSES, "%zu processes", *count);
    for (size_t i = 0; i < *count; i++) {
        const ProcessInformation *one = &processes[i];
        require_filled("process", i, *one, processId);
        bool decimal = strspn(one->processId, "0123456789") == strlen(one->processId);
        require(decimal, "process %zu has the id %s", i, one->processId);
        require_filled("process", i, *one, deviceUUID);
        require(is_known(one->deviceUUID), "process %zu is on %s, which is no device", i, one->deviceUUID);
        require(is_percent(one->computeUtilizationPercent), "process %zu computes %g %%", i,
                one->computeUtilizationPercent);
        require(is_percent(one->memoryUtilizationPercent), "process %zu has %g %% of the memory", i,
                one->memoryUtilizationPercent);
    }
}

static void processes_in_a_buffer_of(size_t maximum) {
    size_t *count = new_count();
    size_t size = maximum * sizeof(ProcessInformation);
    ProcessInformation *few = guarded_new(size);
    *count = 0;
    require_mild_or_invalid(provider.GetProcessInformation(few, maximum, count));
    require(*count <= maximum, "AccelGetProcessInformation gives %zu for a maximum of %zu", *count, maximum);
    require(guarded_intact(few, size), "AccelGetProcessInformation wrote before the buffer");
}

static void processes_in_a_too_small_buffer(void) {
    start();
    processes_in_a_buffer_of(1);
}

static void processes_in_no_buffer(void) {
    start();
    processes_in_a_buffer_of(0);
}

static void no_place_for_processes(void) {
    start();
    require_code(provider.GetProcessInformation(NULL, 4, new_count()), ERROR_INVALID_PARAM);
}

static void no_place_for_the_number_of_processes(void) {
    start();
    void *processes = guarded_new(4 * sizeof(ProcessInformation));
    require_code(provider.GetProcessInformation(processes, 4, NULL), ERROR_INVALID_PARAM);
}

/* Mounts. */

static void mounts_are_absolute_paths(void) {
    start();
    size_t *count = new_count();
    Mount *mounts = guarded_new(64 * sizeof *mounts);
    Code code = provider.GetVendorMountLibs(mounts, 64, count);
    if (code == CODE(ERROR_NOT_SUPPORTED)) {
        skip("not supported");
    }
    require(code == CODE(SUCCESS), "AccelGetVendorMountLibs is %s", name_of(code));
    require(*count <= 64, "%zu mounts", *count);
    for (size_t i = 0; i < *count; i++) {
        require_text("mount", i, mounts[i], hostPath);
        require_text("mount", i, mounts[i], guestPath);
        bool absolute = mounts[i].hostPath[0] == '/' && mounts[i].guestPath[0] == '/';
        require(absolute, "mount %zu is of %s at %s", i, mounts[i].hostPath, mounts[i].guestPath);
    }
}

static void mounts_in_a_buffer_of(size_t maximum) {
    size_t *count = new_count();
    size_t size = maximum * sizeof(Mount);
    Mount *few = guarded_new(size);
    *count = 0;
    require_mild_or_invalid(provider.GetVendorMountLibs(few, maximum, count));
    require(*count <= maximum, "AccelGetVendorMountLibs gives %zu for a maximum of %zu", *count, maximum);
    require(guarded_intact(few, size), "AccelGetVendorMountLibs wrote before the buffer");
}

static void mounts_in_a_too_small_buffer(void) {
    start();
    mounts_in_a_buffer_of(1);
}

static void mounts_in_no_buffer(void) {
    start();
    mounts_in_a_buffer_of(0);
}

static void no_place_for_mounts(void) {
    start();
    require_code(provider.GetVendorMountLibs(NULL, 4, new_count()), ERROR_INVALID_PARAM);
}

static void no_place_for_the_number_of_mounts(void) {
    start();
    require_code(provider.GetVendorMountLibs(guarded_new(4 * sizeof(Mount)), 4, NULL), ERROR_INVALID_PARAM);
}

/* What a provider may leave out: then its capabilities say so, and its calls are NOT_SUPPORTED. */

static const char *first_uuid(void) {
    return guarded_text(devices[0].basic.uuid);
}

static void partitions_are_refused(void) {
    discover_some();
    if (devices[0].virtualizationCapabilities.supportsPartitioning) {
        skip("the provider supports partitions");
    }
    const char *template = guarded_text("template");
    size_t size = sizeof(PartitionResult);
    PartitionResult *result = guarded_new(size);
    require_code(provider.AssignPartition(template, first_uuid(), result), ERROR_NOT_SUPPORTED);
    require(guarded_intact(result, size), "AccelAssignPartition wrote before the buffer");
    require_code(provider.RemovePartition(template, first_uuid()), ERROR_NOT_SUPPORTED);
}

static void hard_limits_are_refused(void) {
    discover_some();
    if (devices[0].virtualizationCapabilities.supportsHardIsolation) {
        skip("the provider supports hard limits");
    }
    require_code(provider.SetMemHardLimit(first_uuid(), 1 << 30), ERROR_NOT_SUPPORTED);
    require_code(provider.SetComputeUnitHardLimit(first_uuid(), 50), ERROR_NOT_SUPPORTED);
}

static void snapshots_are_refused(void) {
    discover_some();
    if (devices[0].virtualizationCapabilities.supportsSnapshot) {
        skip("the provider supports snapshots");
    }
    SnapshotContext *context = guarded_new(sizeof *context);
    *context = (SnapshotContext){.processIds = NULL, .processCount = 0, .deviceUUID = first_uuid()};
    require_code(provider.Snapshot(context), ERROR_NOT_SUPPORTED);
    require_code(provider.Resume(context), ERROR_NOT_SUPPORTED);
}

static void nulls_where_features_may_be_missing_are_survived(void) {
    start();
    require_mild_or_invalid(provider.AssignPartition(NULL, NULL, NULL));
    require_mild_or_invalid(provider.RemovePartition(NULL, NULL));
    require_mild_or_invalid(provider.SetMemHardLimit(NULL, 0));
    require_mild_or_invalid(provider.SetComputeUnitHardLimit(NULL, 0));
    require_mild_or_invalid(provider.Snapshot(NULL));
    require_mild_or_invalid(provider.Resume(NULL));
}

/* Logs. */

static void a_log_callback_is_accepted(void) {
    require_code(provider.RegisterLogCallback(on_log), SUCCESS);
    provider.Init();
    call_everything();
}

static void a_removed_log_callback_is_not_called(void) {
    require_code(provider.RegisterLogCallback(on_log), SUCCESS);
    require_code(provider.RegisterLogCallback(NULL), SUCCESS);
    int before = logs;
    provider.Init();
    call_everything();
    require(logs == before, "it was called %d times", logs - before);
}

static void a_hundred_rounds(void) {
    for (int round = 0; round < 100; round++) {
        require_code(provider.Init(), SUCCESS);
        size_t *count = new_count();
        require_code(provider.GetDeviceCount(count), SUCCESS);
        require_mild(provider.Shutdown());
        guarded_free(count, sizeof *count);
    }
}

typedef struct Check {
    const char *name;
    void (*run)(void);
} Check;

#define CHECK(function) {#function, function}

static const Check CHECKS[] = {
    CHECK(init_succeeds),
    CHECK(init_twice_succeeds),
    CHECK(shutdown_succeeds),
    CHECK(shutdown_before_init_and_twice_is_survived),
    CHECK(init_after_shutdown_finds_the_devices_again),
    CHECK(every_call_before_init_is_survived),
    CHECK(every_call_after_shutdown_is_survived),
    CHECK(devices_are_described),
    CHECK(uuids_are_distinct_and_stable),
    CHECK(texts_have_nothing_behind_their_nul),
    CHECK(devices_in_a_larger_buffer),
    CHECK(devices_in_a_too_small_buffer),
    CHECK(devices_in_no_buffer),
    CHECK(no_place_for_the_device_count),
    CHECK(no_place_for_devices),
    CHECK(no_place_for_the_number_of_devices),
    CHECK(topology_names_the_devices),
    CHECK(topology_is_the_same_from_both_ends),
    CHECK(no_place_for_the_topology),
    CHECK(metrics_of_every_device),
    CHECK(metrics_of_one_device),
    CHECK(metrics_of_no_device),
    CHECK(metrics_of_more_than_64),
    CHECK(metrics_of_an_unknown_uuid),
    CHECK(metrics_of_an_empty_uuid),
    CHECK(metrics_of_a_uuid_without_nul),
    CHECK(metrics_of_a_uuid_that_is_not_utf_8),
    CHECK(metrics_of_a_null_uuid),
    CHECK(no_uuids_for_metrics),
    CHECK(no_place_for_metrics),
    CHECK(processes_are_described),
    CHECK(processes_in_a_too_small_buffer),
    CHECK(processes_in_no_buffer),
    CHECK(no_place_for_processes),
    CHECK(no_place_for_the_number_of_processes),
    CHECK(mounts_are_absolute_paths),
    CHECK(mounts_in_a_too_small_buffer),
    CHECK(mounts_in_no_buffer),
    CHECK(no_place_for_mounts),
    CHECK(no_place_for_the_number_of_mounts),
    CHECK(partitions_are_refused),
    CHECK(hard_limits_are_refused),
    CHECK(snapshots_are_refused),
    CHECK(nulls_where_features_may_be_missing_are_survived),
    CHECK(a_log_callback_is_accepted),
    CHECK(a_removed_log_callback_is_not_called),
    CHECK(a_hundred_rounds),
};

static int passed;
static int skipped;
static int failed;

static void report(const char *name, const char *problem) {
    if (problem == NULL) {
        printf("ok %s\n", name);
        passed++;
    } else {
        printf("not ok %s: %s\n", name, problem);
        failed++;
    }
}

/* The symbols that the hypervisor looks up, of which it can do without the log callback. */
static void library_loads(void) {
    const char *error = provider_load(library, &provider);
    require(error == NULL, "%s", error);
    bool is_of_january = provider.Init == NULL && dlsym(RTLD_DEFAULT, "VirtualGPUInit") != NULL;
    require(!is_of_january, "no symbol AccelInit: a library of the January 2026 ABI?");
#define EXPORTED(member, symbol)                                                                                       \
    require(provider.member != NULL || strcmp(#member, "RegisterLogCallback") == 0, "no symbol %s", #symbol);
    FUNCTIONS(EXPORTED)
#undef EXPORTED
}

static Code accept_any_callback(LogCallbackFunc callback) {
    (void)callback;
    return CODE(SUCCESS);
}

static void run_loaded(const Check *check) {
    library_loads();
    if (provider.RegisterLogCallback == NULL) {
        if (strstr(check->name, "log_callback") != NULL) {
            skip("the library takes no log callback");
        }
        provider.RegisterLogCallback = accept_any_callback;
    }
    check->run();
    require(fatal_logs == 0, "a log message of the level FATAL, or NULL");
}

/* Runs a check in a child, whose output would be the provider's. */
static void run(const Check *check) {
    int answer[2], output = memfd_create("output", 0);
    if (pipe(answer) != 0 || output < 0) {
        perror("pipe");
        exit(2);
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        verdict = answer[1];
        dup2(output, STDOUT_FILENO);
        dup2(output, STDERR_FILENO);
        alarm(SECONDS_A_CHECK);
        run_loaded(check);
        fflush(NULL);
        _exit(0);
    }
    close(answer[1]);
    char text[512] = "";
    ssize_t length = read(answer[0], text, sizeof text - 1);
    text[length < 0 ? 0 : length] = '\0';
    close(answer[0]);
    int status;
    waitpid(child, &status, 0);
    off_t printed = lseek(output, 0, SEEK_END);
    close(output);
    static size_t shown;
    shown += (size_t)printf("%s", warnings + shown);
    char problem[600];
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        snprintf(problem, sizeof problem, "it did not return within %d s", SECONDS_A_CHECK);
    } else if (WIFSIGNALED(status)) {
        snprintf(problem, sizeof problem, "it was killed by %s", strsignal(WTERMSIG(status)));
    } else if (text[0] == 'F') {
        snprintf(problem, sizeof problem, "%s", text + 1);
    } else if (printed > 0) {
        snprintf(problem, sizeof problem, "the library printed %lld bytes", (long long)printed);
    } else if (text[0] == 'S') {
        printf("ok %s # SKIP %s\n", check->name, text + 1);
        skipped++;
        return;
    } else if (WEXITSTATUS(status) != 0) {
        snprintf(problem, sizeof problem, "it ended the process with %d", WEXITSTATUS(status));
    } else {
        report(check->name, NULL);
        return;
    }
    report(check->name, problem);
}

static void nothing(void) {
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s LIBRARY\n", argv[0]);
        return 2;
    }
    library = argv[1];
    warnings = mmap(NULL, WARNINGS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (warnings == MAP_FAILED) {
        perror("mapping memory for warnings");
        return 2;
    }
    /* The checks read the C header's layout, whatever the environment asks AMD's provider for. */
    unsetenv("ACCELERATOR_AMD_TOPOLOGY");
    run(&(Check){"library_loads", nothing});
    /* A library that does not load fails one check, and not each. */
    for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS && !(i == 0 && failed > 0); i++) {
        run(&CHECKS[i]);
    }
    printf("%d passed, %d skipped, %d failed\n", passed, skipped, failed);
    return failed > 0;
}
