/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile LIBRARY SECONDS THREADS [SEED]
 *
 * Calls every function of an accelerator library from many threads with arguments that a careful caller never passes:
 * NULL, no bytes, SIZE_MAX, unaligned, UUIDs that are not UTF-8, that end at a guard page, or that have no NUL within
 * 64 bytes. Threads start and shut down the library and change its log callback meanwhile, and the callback calls
 * back. A buffer is never smaller than the count that goes with it unless 64 devices or 1024 processes fit: no library
 * can detect that lie.
 *
 * Prints how many calls had which result. The exit code is 1 after a result that the ABI does not have, a count above
 * the maximum or a byte written before a buffer; a byte behind one kills the program. Build it with -DV1 for the ABI of
 * January 2026, and with -fsanitize=address or -fsanitize=thread where the library is built so too.
 */
#define _GNU_SOURCE
#include "abi.h"
#include "guarded.h"

#include <pthread.h>
#include <time.h>

#define CODES 7
/* A callback that calls back may be called by that call. */
#define DEEPEST_CALLBACK 3
#define MOUNTS 64

static Provider provider;
static time_t until;
static unsigned long long results[CODES];
static unsigned long long booleans[2];
static unsigned long long callbacks;
static unsigned long long faults;

/* Each thread's own: a lock between the threads would hide the library's races from the thread sanitizer. */
static __thread unsigned long long random_state;
static __thread int callback_depth;

static unsigned choose(unsigned choices) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % choices;
}

static void fault(const char *what) {
    __atomic_add_fetch(&faults, 1, __ATOMIC_RELAXED);
    fprintf(stderr, "fault: %s\n", what);
}

static Code counted(Code code) {
    if ((unsigned)code >= CODES) {
        fault("a result that the ABI does not have");
        return code;
    }
    __atomic_add_fetch(&results[code], 1, __ATOMIC_RELAXED);
    return code;
}

#ifdef V1
/* Takes the byte, because reading a bool that is neither 0 nor 1 is undefined. */
static void counted_bool(bool answer) {
    unsigned char byte;
    memcpy(&byte, &answer, 1);
    if (byte > 1) {
        fault("a bool that is neither 0 nor 1");
        return;
    }
    __atomic_add_fetch(&booleans[byte], 1, __ATOMIC_RELAXED);
}
#endif

/* A buffer for one argument: as many bytes as it needs before the guard page, or NULL, or at an odd address. */
typedef struct Place {
    void *bytes;
    size_t size;
    /* Bytes behind the argument's, which the library leaves alone. */
    size_t spare;
} Place;

/* Buffers of this thread between two calls: to map each anew would keep the threads in the kernel, one by one. */
static __thread Place kept[64];

static void *take(size_t size) {
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (kept[i].bytes != NULL && kept[i].size == size) {
            void *bytes = kept[i].bytes;
            kept[i].bytes = NULL;
            guarded_fill(bytes, size);
            return bytes;
        }
    }
    return guarded_new(size);
}

static void keep(void *bytes, size_t size) {
    Place *slot = &kept[choose(sizeof kept / sizeof *kept)];
    if (slot->bytes != NULL) {
        guarded_free(slot->bytes, slot->size);
    }
    *slot = (Place){bytes, size, 0};
}

static Place place(size_t size) {
    unsigned kind = choose(8);
    if (kind == 0) {
        return (Place){NULL, 0, 0};
    }
    /* Every argument's size is even, so one byte more moves it to an odd address. */
    size_t spare = kind < 3 ? 1 : 0;
    return (Place){take(size + spare), size + spare, spare};
}

static void leave(Place *made) {
    if (made->bytes == NULL) {
        return;
    }
    if (!guarded_intact(made->bytes, made->size)) {
        fault("the library wrote before a buffer");
    }
    if (made->spare > 0 && ((unsigned char *)made->bytes)[made->size - 1] != FILL) {
        fault("the library wrote behind a buffer");
    }
    keep(made->bytes, made->size);
}

static void leave_count(const char *function, Place *count, Code code, size_t maximum) {
    size_t value;
    if (code == CODE(SUCCESS) && count->bytes != NULL) {
        memcpy(&value, count->bytes, sizeof value);
        if (value > maximum) {
            fprintf(stderr, "%s: %zu of %zu: ", function, value, maximum);
            fault("a count above the maximum");
        }
    }
    leave(count);
}

static const char *const STRANGE[] = {
    "", "g", "gpu-0", "GPU-0123456789ABCDEF", "\xff\xfe\x80\xc0", "%s%n%s", "../../etc/passwd", "gpu-\n\t\x01",
    "\xed\xa0\x80", "012345678901234567890123456789012345678901234567890123456789012",
};
#define STRANGE_TEXTS (sizeof STRANGE / sizeof *STRANGE)

/* Texts for every thread: each ends before a guard page, and some have no NUL within 64 bytes. */
static const char *texts[STRANGE_TEXTS + 2 + MAX_TOPOLOGY_DEVICES];
static unsigned text_count;

/* The library has no reason to write to a text. */
static void add_text(void *bytes, size_t size) {
    size_t open = guarded_rounded(size);
    mprotect((char *)bytes + size - open, open, PROT_READ);
    texts[text_count++] = bytes;
}

static void make_texts(void) {
    for (size_t i = 0; i < STRANGE_TEXTS; i++) {
        add_text(guarded_text(STRANGE[i]), strlen(STRANGE[i]) + 1);
    }
    add_text(memset(guarded_new(UUID_STRING_LENGTH), 'g', UUID_STRING_LENGTH), UUID_STRING_LENGTH);
    add_text(memset(guarded_new(UUID_STRING_LENGTH), 0xff, UUID_STRING_LENGTH), UUID_STRING_LENGTH);
    /* This machine's devices. */
    ExtendedDeviceInfo *devices = guarded_new(MAX_TOPOLOGY_DEVICES * sizeof *devices);
    size_t count = 0;
    provider.GetAllDevices(devices, MAX_TOPOLOGY_DEVICES, &count);
    for (size_t i = 0; i < count && i < MAX_TOPOLOGY_DEVICES; i++) {
        char *device = devices[i].basic.uuid;
        device[UUID_STRING_LENGTH - 1] = '\0';
        add_text(guarded_text(device), strlen(device) + 1);
    }
}

static const char *text(void) {
    return choose(8) == 0 ? NULL : texts[choose(text_count)];
}

/* A device of this machine, where it has one. */
static const char *known_uuid(void) {
    unsigned strange = STRANGE_TEXTS + 2;
    return text_count > strange ? texts[strange + choose(text_count - strange)] : text();
}

static const char *uuid(void) {
    return choose(2) ? known_uuid() : text();
}

static void call_one(void);

static void calls_back(const char *level, const char *message) {
    __atomic_add_fetch(&callbacks, 1, __ATOMIC_RELAXED);
    if (level == NULL || message == NULL || strcmp(level, "FATAL") == 0) {
        fault("a log message of the level FATAL, or NULL");
    }
    if (callback_depth < DEEPEST_CALLBACK) {
        callback_depth++;
        call_one();
        callback_depth--;
    }
}

static void listens(const char *level, const char *message) {
    __atomic_add_fetch(&callbacks, 1, __ATOMIC_RELAXED);
    if (level == NULL || message == NULL) {
        fault("a log message that is NULL");
    }
}

static void get_device_count(void) {
    Place count = place(sizeof(size_t));
    Code code = counted(provider.GetDeviceCount(count.bytes));
    leave_count("GetDeviceCount", &count, code, MAX_TOPOLOGY_DEVICES);
}

/* A maximum, and how many entries the buffer has for it: where all that there can be fit, the caller may exaggerate. */
static size_t maximum(size_t all, size_t *entries) {
    static const unsigned few[] = {0, 1, 2, 3, 8};
    switch (choose(4)) {
    case 0:
        *entries = all;
        return SIZE_MAX;
    case 1:
        *entries = all;
        return SIZE_MAX / 2 + choose(3);
    case 2:
        return *entries = all;
    default:
        return *entries = few[choose(sizeof few / sizeof *few)];
    }
}

static void get_all_devices(void) {
    size_t entries, most = maximum(MAX_TOPOLOGY_DEVICES, &entries);
    Place devices = place(entries * sizeof(ExtendedDeviceInfo)), count = place(sizeof(size_t));
    Code code = counted(provider.GetAllDevices(devices.bytes, most, count.bytes));
    leave(&devices);
    leave_count("GetAllDevices", &count, code, entries);
}

static void get_process_information(void) {
    size_t entries, most = maximum(MAX_PROCESSES, &entries);
    Place processes = place(entries * sizeof(ProcessInformation)), count = place(sizeof(size_t));
    Code code = counted(provider.GetProcessInformation(processes.bytes, most, count.bytes));
    leave(&processes);
    leave_count("GetProcessInformation", &count, code, entries);
}

static void get_vendor_mount_libs(void) {
    size_t entries, most = maximum(MOUNTS, &entries);
    Place mounts = place(entries * sizeof(Mount)), count = place(sizeof(size_t));
    Code code = counted(provider.GetVendorMountLibs(mounts.bytes, most, count.bytes));
    leave(&mounts);
    leave_count("GetVendorMountLibs", &count, code, entries);
}

static void get_device_metrics(void) {
    static const unsigned counts[] = {0, 1, 2, 8, 64, 65, 100};
    unsigned count = counts[choose(sizeof counts / sizeof *counts)];
    Place uuids = place(count * sizeof(char *)), metrics = place(count * sizeof(DeviceMetrics));
    /* A strange UUID ends the call: half of the lists have none. */
    bool known_alone = choose(2);
    for (size_t i = 0; i < count && uuids.bytes != NULL; i++) {
        const char *asked = known_alone ? known_uuid() : uuid();
        memcpy((char *)uuids.bytes + i * sizeof asked, &asked, sizeof asked);
    }
    bool exaggerates = (uuids.bytes == NULL || metrics.bytes == NULL) && choose(2);
    Code code = counted(provider.GetDeviceMetrics(uuids.bytes, exaggerates ? SIZE_MAX : count, metrics.bytes));
    for (size_t i = 0; i < count && code == CODE(SUCCESS); i++) {
        size_t extras, offset = i * sizeof(DeviceMetrics) + offsetof(DeviceMetrics, extraMetricsCount);
        memcpy(&extras, (char *)metrics.bytes + offset, sizeof extras);
        if (extras > MAX_EXTRA_METRICS) {
            fault("more extra metrics than there is room for");
        }
    }
    leave(&uuids);
    leave(&metrics);
}

#ifdef V1
static void get_topology(void) {
    static const unsigned counts[] = {0, 1, 2, 64, 65, 1000};
    size_t count = counts[choose(sizeof counts / sizeof *counts)];
    Place indexes = place(count * sizeof(int32_t)), topology = place(sizeof(ExtendedDeviceTopology));
    for (size_t i = 0; i < count && indexes.bytes != NULL; i++) {
        int32_t index = choose(4) ? (int32_t)i : (int32_t)(choose(2) ? INT32_MIN : INT32_MAX);
        memcpy((char *)indexes.bytes + i * sizeof index, &index, sizeof index);
    }
    bool exaggerates = (indexes.bytes == NULL || topology.bytes == NULL) && choose(2);
    counted(provider.GetTopology(indexes.bytes, exaggerates ? SIZE_MAX : count, topology.bytes));
    leave(&indexes);
    leave(&topology);
}

static void assign_partition(void) {
    Place assignment = place(sizeof(PartitionAssignment));
    counted_bool(provider.AssignPartition(assignment.bytes));
    leave(&assignment);
}

static void set_limits(void) {
    counted(provider.SetMemHardLimit(text(), uuid(), choose(2) ? UINT64_MAX : 0));
    counted(provider.SetComputeUnitHardLimit(text(), uuid(), choose(2) ? UINT32_MAX : 0));
}

static void remove_partition(void) {
    counted_bool(provider.RemovePartition(text(), uuid()));
}

/* An array of FILL: its count is beyond the array, and its UUID has no NUL. */
static void snapshot_and_resume(void) {
    Place processes = place(sizeof(ProcessArray));
    counted(choose(2) ? provider.Snapshot(processes.bytes) : provider.Resume(processes.bytes));
    leave(&processes);
}

static void start_or_shut_down(void) {
    counted(provider.Init());
}
#else
static void get_topology(void) {
    Place topology = place(sizeof(ExtendedDeviceTopology));
    counted(provider.GetTopology(topology.bytes));
    leave(&topology);
}

static void assign_partition(void) {
    Place result = place(sizeof(PartitionResult));
    counted(provider.AssignPartition(text(), uuid(), result.bytes));
    leave(&result);
}

static void set_limits(void) {
    counted(provider.SetMemHardLimit(uuid(), choose(2) ? UINT64_MAX : 0));
    counted(provider.SetComputeUnitHardLimit(uuid(), choose(2) ? UINT32_MAX : 0));
}

static void remove_partition(void) {
    counted(provider.RemovePartition(text(), uuid()));
}

static void snapshot_and_resume(void) {
    Place context = place(sizeof(SnapshotContext));
    pid_t process = getpid();
    if (context.bytes != NULL) {
        pid_t *processes = choose(2) ? &process : NULL;
        SnapshotContext filled = {processes, processes == NULL ? 0 : 1, uuid()};
        memcpy(context.bytes, &filled, sizeof filled);
    }
    counted(choose(2) ? provider.Snapshot(context.bytes) : provider.Resume(context.bytes));
    leave(&context);
}

static void start_or_shut_down(void) {
    counted(choose(2) ? provider.Init() : provider.Shutdown());
}
#endif

static void register_log_callback(void) {
    static const LogCallbackFunc callbacks_to_choose[] = {NULL, listens, calls_back};
    counted(provider.RegisterLogCallback(callbacks_to_choose[choose(3)]));
}

static void call_one(void) {
    static void (*const calls[])(void) = {
        get_device_count, get_all_devices, get_process_information, get_vendor_mount_libs, get_device_metrics,
        get_topology, assign_partition, remove_partition, set_limits, snapshot_and_resume, start_or_shut_down,
        register_log_callback,
    };
    calls[choose(sizeof calls / sizeof *calls)]();
}

static time_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static void *run(void *seed) {
    random_state = (unsigned long long)(uintptr_t)seed * 0x9E3779B97F4A7C15ULL;
    do {
        call_one();
    } while (now() < until);
    return NULL;
}

int main(int argc, char **argv) {
    int seconds = argc > 2 ? atoi(argv[2]) : 0, threads = argc > 3 ? atoi(argv[3]) : 0;
    if (argc < 4 || argc > 5 || seconds < 1 || threads < 1 || threads > 1024) {
        fprintf(stderr, "usage: %s LIBRARY SECONDS THREADS [SEED]\n", argv[0]);
        return 2;
    }
    unsigned long seed = argc > 4 ? strtoul(argv[4], NULL, 10) : 1;
    const char *error = provider_load(argv[1], &provider);
    const char *missing = error == NULL ? provider_lacks(&provider) : NULL;
    if (error != NULL || missing != NULL) {
        fprintf(stderr, "loading %s: %s\n", argv[1], error != NULL ? error : missing);
        return 1;
    }
    make_texts();
    pthread_t running[1024];
    until = now() + seconds;
    /* A library in which threads wait for one another for ever ends by SIGALRM. */
    alarm((unsigned)seconds + 60);
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&running[i], NULL, run, (void *)(uintptr_t)(seed * 1024 + (unsigned long)i + 1)) != 0) {
            perror("starting a thread");
            return 2;
        }
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(running[i], NULL);
    }
    static const char *const names[CODES] = {
        "SUCCESS",   "INVALID_PARAM", "NOT_FOUND", "NOT_SUPPORTED", "RESOURCE_EXHAUSTED", "OPERATION_FAILED",
        "INTERNAL",
    };
    for (int code = 0; code < CODES; code++) {
        printf("%s: %llu\n", names[code], results[code]);
    }
    printf("false: %llu\ntrue: %llu\nlog callbacks: %llu\nfaults: %llu\n", booleans[0], booleans[1], callbacks, faults);
    return faults > 0;
}
