/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libaccelerator_amd_v1.so: AMD's GPUs for TensorFusion's hypervisor, in the accelerator ABI of TensorFusion at
 * 0b88c6cd (January 2026). accelerator_amd.h is the ABI since March 2026, for libaccelerator_amd.so.
 *
 * Threads. A program may call every function from any thread at any time: also before VirtualGPUInit, and from the
 * log callback. A call prints nothing, and ends the process only where memory runs out. A signal's handler must not
 * call: the library allocates memory. Two calls must not be given one buffer at one time.
 *
 * Buffers. The caller owns every buffer, and the library keeps no pointer to one. It never reports more entries than
 * the caller's maximum. It ends each text with NUL within its array, sets the bytes after it to zero, and cuts longer
 * text at the end of a character.
 *
 * Unknown values. The ABI has no way to mark an unknown number, so it is 0 (-1 for a NUMA node). GetDeviceMetrics
 * says how many of its readings are unknown.
 *
 * Errors. Each function that reads returns NOT_FOUND where the machine cannot be read, with no entry, and the log
 * says why.
 */
#ifndef ACCELERATOR_AMD_V1_H
#define ACCELERATOR_AMD_V1_H

#ifdef ACCELERATOR_AMD_H
#error "accelerator_amd.h and accelerator_amd_v1.h lay out structs of one name in two ways: include one of them"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many entries an array has, or how many bytes a text has with its NUL. */
#define MAX_DEVICE_PROPERTIES 64
#define MAX_TOPOLOGY_DEVICES 64
#define MAX_PARTITION_ENVS 16
#define MAX_ENV_KEY_LENGTH 64
#define MAX_ENV_VALUE_LENGTH 256
#define MAX_PROCESSES 1024
#define MAX_EXTRA_METRICS 64
#define MAX_DEVICE_UUIDS 64
#define UUID_STRING_LENGTH 64
#define MAX_MOUNT_PATH 512

/*
 * TensorFusion's hypervisor ends if it cannot list the devices at its start. Later, a code other than SUCCESS costs it
 * the answer of that call.
 */
typedef enum Result {
    RESULT_SUCCESS = 0,
    /* The function needs a pointer and got NULL, or got more UUIDs than MAX_DEVICE_UUIDS. */
    RESULT_ERROR_INVALID_PARAM = 1,
    /* The machine cannot be read; the log says why. */
    RESULT_ERROR_NOT_FOUND = 2,
    /* AMD's GPUs, or this library, cannot do it. */
    RESULT_ERROR_NOT_SUPPORTED = 3,
    /* This library never returns the codes below; other providers of the ABI may. */
    RESULT_ERROR_RESOURCE_EXHAUSTED = 4,
    RESULT_ERROR_OPERATION_FAILED = 5,
    RESULT_ERROR_INTERNAL = 6
} Result;

/* What a device and this library can do together. */
typedef struct VirtualizationCapabilities {
    /* AssignPartition and RemovePartition work. */
    bool supportsPartitioning;
    /* A library in the workload's process can bound its memory and compute. */
    bool supportsSoftIsolation;
    /* SetMemHardLimit and SetComputeUnitHardLimit work. */
    bool supportsHardIsolation;
    /* Snapshot and Resume work. */
    bool supportsSnapshot;
    /* GetDeviceMetrics reads this device. */
    bool supportsMetrics;
    /* A workload on another machine can use this device. */
    bool supportsRemoting;
    /* How many partitions AssignPartition can make of this device. */
    uint32_t maxPartitions;
    /* How many workloads may share this device; 0 for any number. */
    uint32_t maxWorkersPerDevice;
} VirtualizationCapabilities;

/* One device: a GPU, or one partition of a GPU that its driver has divided. */
typedef struct DeviceBasicInfo {
    /* Lower case and valid as the name of a Kubernetes object. It survives reboots and a change of the order. */
    char uuid[64];
    /* "AMD". */
    char vendor[32];
    /* The market name, as "AMD Instinct MI300X"; of a partition with its mode, as "AMD Instinct MI300X CPX". */
    char model[128];
    /* amdgpu's version. */
    char driverVersion[64];
    /* The VBIOS's version. */
    char firmwareVersion[64];
    /* The position in GetAllDevices' array, from 0. */
    int32_t index;
    /* -1 where the machine names none. */
    int32_t numaNode;
    uint64_t totalMemoryBytes;
    uint64_t totalComputeUnits;
    /* The data sheet's peak of dense FP16 matrix operations, in 10^12 operations a second, of
     * which a partition has its share; 0 where it is unknown. */
    double maxTflops;
    /* The link's generation and number of lanes as the device can run it. */
    uint32_t pcieGen;
    uint32_t pcieWidth;
} DeviceBasicInfo;

typedef struct DevicePropertyKV {
    char key[64];
    char value[256];
} DevicePropertyKV;

typedef struct DeviceProperties {
    DevicePropertyKV properties[MAX_DEVICE_PROPERTIES];
    /* How many of them are set. */
    size_t count;
} DeviceProperties;

typedef struct ExtendedDeviceInfo {
    DeviceBasicInfo basic;
    DeviceProperties props;
    VirtualizationCapabilities virtualizationCapabilities;
} ExtendedDeviceInfo;

/* A kind of partition, as TensorFusion's templates describe it. No function of this library takes one. */
typedef struct PartitionTemplate {
    char templateId[64];
    char name[128];
    uint64_t memoryBytes;
    uint64_t computeUnits;
    /* In 10^12 operations a second. */
    double tflops;
    uint32_t sliceCount;
    bool isDefault;
    char description[256];
} PartitionTemplate;

typedef struct DeviceTopology {
    char deviceUUID[64];
    /* -1 where the machine names none. */
    int32_t numaNode;
} DeviceTopology;

typedef struct ExtendedDeviceTopology {
    DeviceTopology devices[MAX_TOPOLOGY_DEVICES];
    size_t deviceCount;
    /* "XGMI" where XGMI joins the devices, and "PCIe" otherwise. */
    char topologyType[32];
} ExtendedDeviceTopology;

typedef struct EnvVar {
    char key[MAX_ENV_KEY_LENGTH];
    char value[MAX_ENV_VALUE_LENGTH];
} EnvVar;

/* The caller asks by the first two; the others are the answer. */
typedef struct PartitionAssignment {
    char templateId[64];
    char deviceUUID[64];
    char partitionUUID[64];
    EnvVar envVars[MAX_PARTITION_ENVS];
    size_t envVarCount;
} PartitionAssignment;

/* A workload's process and its limits. No function of this library takes one. */
typedef struct WorkerInfo {
    char workerId[64];
    char deviceUUID[64];
    pid_t processId;
    uint64_t memoryLimitBytes;
    uint32_t computeUnitLimit;
} WorkerInfo;

/* What to freeze or to wake. */
typedef struct ProcessArray {
    pid_t processIds[MAX_PROCESSES];
    size_t processCount;
    char deviceUUID[64];
} ProcessArray;

/* One more reading of a device; its key says which, and in which unit. */
typedef struct ExtraMetric {
    char key[64];
    double value;
} ExtraMetric;

/* What one process uses of one device. A process on two devices has two of these. */
typedef struct ProcessInformation {
    /* The process id as a decimal number, in the kernel's first PID namespace. */
    char processId[32];
    char deviceUUID[64];
    /* From 0 to 100. */
    double computeUtilizationPercent;
    /* Compute units that the process occupies, and those of the device. */
    uint64_t activeSMs;
    uint64_t totalSMs;
    uint64_t memoryUsedBytes;
    uint64_t memoryReservedBytes;
    /* Of the device's memory, from 0 to 100. */
    double memoryUtilizationPercent;
} ProcessInformation;

/* How one device is now. */
typedef struct DeviceMetrics {
    char deviceUUID[64];
    double powerUsageWatts;
    double temperatureCelsius;
    /* Traffic by PCIe in KB a second, whatever the name says: TensorFusion takes the number as KB. */
    uint64_t pcieRxBytes;
    uint64_t pcieTxBytes;
    /* Compute, from 0 to 100. */
    uint32_t utilizationPercent;
    uint64_t memoryUsedBytes;
    ExtraMetric extraMetrics[MAX_EXTRA_METRICS];
    size_t extraMetricsCount;
} DeviceMetrics;

/* A UUID in an array of UUIDs. No function of this library takes one. */
typedef struct DeviceUUIDEntry {
    char uuid[UUID_STRING_LENGTH];
} DeviceUUIDEntry;

/* A folder of the machine, and where a workload's container expects it. */
typedef struct Mount {
    char hostPath[MAX_MOUNT_PATH];
    char guestPath[MAX_MOUNT_PATH];
} Mount;

/*
 * Receives what the library has to say. `level` is "DEBUG", "INFO", "WARN" or "ERROR", and never "FATAL", at which
 * TensorFusion's hypervisor exits. Both texts are UTF-8, end with NUL, and are gone when the callback returns. The
 * library calls it in the thread that called the library, from several threads at a time. The callback returns: no
 * exception leaves it.
 */
typedef void (*LogCallbackFunc)(const char *level, const char *message);

/*
 * Prepares the library. A program may leave this call out, or repeat it: each other function prepares what it needs.
 * Returns SUCCESS, on a machine without a GPU too.
 */
Result VirtualGPUInit(void);

/*
 * Sets `*deviceCount` to the number of devices, at most MAX_TOPOLOGY_DEVICES; a machine without a usable GPU has 0.
 * Returns INVALID_PARAM if `deviceCount` is NULL, and SUCCESS otherwise.
 */
Result GetDeviceCount(size_t *deviceCount);

/*
 * Describes the first `maxCount` devices in `devices`, and sets `*deviceCount` to how many it described. `devices`
 * has room for `maxCount` entries; the others stay as they are. The order is that of KFD's nodes, in which the
 * partitions of a card follow one another. Returns INVALID_PARAM if a pointer that it needs is NULL, and SUCCESS
 * otherwise.
 */
Result GetAllDevices(ExtendedDeviceInfo *devices, size_t maxCount, size_t *deviceCount);

/*
 * Says which NUMA node devices are on, in the order in which `deviceIndexArray` names them by DeviceBasicInfo's
 * index. The array has `deviceCount` entries, of which the first MAX_TOPOLOGY_DEVICES count. An index without a
 * device gets no entry in `topology`. Returns INVALID_PARAM if a pointer that it needs is NULL, and SUCCESS
 * otherwise.
 */
Result GetDeviceTopology(int32_t *deviceIndexArray, size_t deviceCount, ExtendedDeviceTopology *topology);

/*
 * Would make a partition of a device by a template. AMD's driver divides a GPU as a whole, and the partitions are
 * devices of their own here. Writes nothing and returns false.
 */
bool AssignPartition(PartitionAssignment *assignment);

/* Would undo AssignPartition. Changes nothing and returns false. */
bool RemovePartition(const char *templateId, const char *deviceUUID);

/*
 * Would bound the bytes that a workload may allocate on a device. amdgpu has no such limit.
 * Changes nothing and returns NOT_SUPPORTED.
 */
Result SetMemHardLimit(const char *workerId, const char *deviceUUID, uint64_t memoryLimitBytes);

/*
 * Would bound the compute units that a workload may use, in percent. The library can set no such limit for a process
 * of another program. Changes nothing and returns NOT_SUPPORTED.
 */
Result SetComputeUnitHardLimit(const char *workerId, const char *deviceUUID, uint32_t computeUnitLimit);

/* Would freeze processes and save their memory on a device. Changes nothing and returns NOT_SUPPORTED. */
Result Snapshot(ProcessArray *processes);

/* Would wake what Snapshot froze. Changes nothing and returns NOT_SUPPORTED. */
Result Resume(ProcessArray *processes);

/*
 * Lists what processes use of the devices, at most `maxCount` entries, and sets `*processInfoCount` to how many.
 * `processInfos` has room for `maxCount` entries. KFD lists the processes of every
 * container.
 * Returns INVALID_PARAM if a pointer that it needs
 * is NULL, and SUCCESS otherwise.
 */
Result GetProcessInformation(ProcessInformation *processInfos, size_t maxCount, size_t *processInfoCount);

/*
 * Reads the `deviceCount` devices that `deviceUUIDs` names, into `metrics[i]` for `deviceUUIDs[i]`. Both arrays have
 * `deviceCount` entries, and a UUID counts up to its NUL or UUID_STRING_LENGTH bytes, without regard to case. The
 * extra metric "unknown_readings" counts the fixed readings that are 0 because they are unknown; a device that went
 * away has no known one, nor has a UUID that no device had. Returns INVALID_PARAM if an array or a UUID is NULL or
 * `deviceCount` exceeds MAX_DEVICE_UUIDS, and SUCCESS otherwise.
 */
Result GetDeviceMetrics(const char **deviceUUIDs, size_t deviceCount, DeviceMetrics *metrics);

/*
 * Lists the folders of ROCm that a workload's container needs, at most `maxCount`, and sets `*mountCount` to how
 * many. `mounts` has room for `maxCount` entries. Returns INVALID_PARAM if a pointer that it needs is NULL, and
 * SUCCESS otherwise.
 */
Result GetVendorMountLibs(Mount *mounts, size_t maxCount, size_t *mountCount);

/*
 * Sends what the library has to say to `callback` from now on, and to no one if `callback` is NULL. A call that is
 * under way in another thread may still use the callback before. Returns SUCCESS.
 */
Result RegisterLogCallback(LogCallbackFunc callback);

#ifdef __cplusplus
}
#endif

#endif
