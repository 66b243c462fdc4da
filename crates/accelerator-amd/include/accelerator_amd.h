/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libaccelerator_amd.so: AMD's GPUs for TensorFusion's hypervisor, in the accelerator ABI of TensorFusion since
 * 8cdb639b (March 2026). accelerator_amd_v1.h is the ABI of January 2026, for libaccelerator_amd_v1.so.
 *
 * Threads. A program may call every function from any thread at any time: also before AccelInit, after AccelShutdown,
 * and from the log callback. A call prints nothing, and ends the process only where memory runs out. A signal's
 * handler must not call: the library allocates memory. Two calls must not be given one buffer at one time.
 *
 * Buffers. The caller owns every buffer, and the library keeps no pointer to one. It never reports more entries than
 * the caller's maximum. It ends each text with NUL within its array, sets the bytes after it to zero, and cuts longer
 * text at the end of a character.
 *
 * Unknown values. The ABI has no way to mark an unknown number, so it is 0 (-1 for a NUMA node).
 * AccelGetDeviceMetrics says how many of its readings are unknown.
 *
 * Errors. Each function that reads returns NOT_FOUND where the machine cannot be read, with no entry, and the log
 * says why.
 */
#ifndef ACCELERATOR_AMD_H
#define ACCELERATOR_AMD_H

#ifdef ACCELERATOR_AMD_V1_H
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
#define MAX_PARTITION_DEVICE_NODES 16
#define MAX_PARTITION_DEVICE_NODE_LENGTH 1026

/*
 * TensorFusion's hypervisor ends if it cannot list the devices at its start. Later, a code other than SUCCESS costs it
 * the answer of that call.
 */
typedef enum AccelResult {
    ACCEL_SUCCESS = 0,
    /* The function needs a pointer and got NULL, or got more UUIDs than MAX_DEVICE_UUIDS. */
    ACCEL_ERROR_INVALID_PARAM = 1,
    /* The machine cannot be read; the log says why. */
    ACCEL_ERROR_NOT_FOUND = 2,
    /* AMD's GPUs, or this library, cannot do it. */
    ACCEL_ERROR_NOT_SUPPORTED = 3,
    /* This library never returns the codes below; other providers of the ABI may. */
    ACCEL_ERROR_RESOURCE_EXHAUSTED = 4,
    ACCEL_ERROR_OPERATION_FAILED = 5,
    ACCEL_ERROR_INTERNAL = 6
} AccelResult;

/* How far apart two devices are, from near to far up to SYSTEM. */
typedef enum TopoLevelType {
    /* Partitions of one card. */
    TOPO_LEVEL_INTERNAL = 0,
    /* Joined by XGMI, or behind one PCIe switch. */
    TOPO_LEVEL_SINGLE_SWITCH = 1,
    /* Behind several PCIe switches, without the CPU's host bridge between them. */
    TOPO_LEVEL_MULTI_SWITCH = 2,
    /* Below one PCIe host bridge. */
    TOPO_LEVEL_HOST_BRIDGE = 3,
    /* On one NUMA node, below different host bridges. */
    TOPO_LEVEL_NUMA_NODE = 4,
    /* On different NUMA nodes. */
    TOPO_LEVEL_SYSTEM = 5,
    /* A device and itself. */
    TOPO_LEVEL_SELF = 6,
    TOPO_LEVEL_UNKNOWN = 7
} TopoLevelType;

/* Which array of a PartitionResult counts. */
typedef enum PartitionResultType {
    PARTITION_TYPE_ENVIRONMENT_VARIABLE = 0,
    PARTITION_TYPE_DEVICE_NODE = 1
} PartitionResultType;

/* What a device and this library can do together. */
typedef struct VirtualizationCapabilities {
    /* AccelAssignPartition and AccelRemovePartition work. */
    bool supportsPartitioning;
    /* A library in the workload's process can bound its memory and compute. */
    bool supportsSoftIsolation;
    /* AccelSetMemHardLimit and AccelSetComputeUnitHardLimit work. */
    bool supportsHardIsolation;
    /* AccelSnapshot and AccelResume work. */
    bool supportsSnapshot;
    /* AccelGetDeviceMetrics reads this device. */
    bool supportsMetrics;
    /* A workload on another machine can use this device. */
    bool supportsRemoting;
    /* How many partitions AccelAssignPartition can make of this device. */
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
    char driverVersion[80];
    /* The VBIOS's version. */
    char firmwareVersion[64];
    /* The render node, as "/dev/dri/renderD128". */
    char deviceNode[64];
    /* The position in AccelGetAllDevices' array, from 0. */
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

/* How far one other device is. */
typedef struct DeviceTopoNode {
    char peerUUID[64];
    int32_t peerIndex;
    TopoLevelType topoLevel;
} DeviceTopoNode;

/* One device and its distance to each other device. */
typedef struct DeviceTopologyInfo {
    char deviceUUID[64];
    int32_t deviceIndex;
    /* -1 where the machine names none. */
    int32_t numaNode;
    DeviceTopoNode peers[MAX_TOPOLOGY_DEVICES];
    size_t peerCount;
} DeviceTopologyInfo;

typedef struct ExtendedDeviceTopology {
    DeviceTopologyInfo devices[MAX_TOPOLOGY_DEVICES];
    size_t deviceCount;
} ExtendedDeviceTopology;

/* What to freeze or to wake. */
typedef struct SnapshotContext {
    pid_t *processIds;
    size_t processCount;
    const char *deviceUUID;
} SnapshotContext;

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

/* A folder of the machine, and where a workload's container expects it. */
typedef struct MountPath {
    char hostPath[MAX_MOUNT_PATH];
    char guestPath[MAX_MOUNT_PATH];
} MountPath;

/* What a workload needs to use its partition. */
typedef struct PartitionResult {
    PartitionResultType type;
    char deviceUUID[64];
    char envVars[MAX_PARTITION_ENVS][MAX_ENV_VALUE_LENGTH];
    char deviceNodes[MAX_PARTITION_DEVICE_NODES][MAX_PARTITION_DEVICE_NODE_LENGTH];
} PartitionResult;

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
AccelResult AccelInit(void);

/*
 * Ends the thread that measures traffic. A program may call it twice, and may call every function afterwards.
 * Returns SUCCESS.
 */
AccelResult AccelShutdown(void);

/*
 * Sets `*deviceCount` to the number of devices, at most MAX_TOPOLOGY_DEVICES; a machine without a usable GPU has 0.
 * Returns INVALID_PARAM if `deviceCount` is NULL, and SUCCESS otherwise.
 */
AccelResult AccelGetDeviceCount(size_t *deviceCount);

/*
 * Describes the first `maxCount` devices in `devices`, and sets `*deviceCount` to how many it described. `devices`
 * has room for `maxCount` entries; the others stay as they are. The order is that of KFD's nodes, in which the
 * partitions of a card follow one another. Returns INVALID_PARAM if a pointer that it needs is NULL, and SUCCESS
 * otherwise.
 */
AccelResult AccelGetAllDevices(ExtendedDeviceInfo *devices, size_t maxCount, size_t *deviceCount);

/*
 * Says how far each device is from each other device, by XGMI, PCIe and NUMA. If ACCELERATOR_AMD_TOPOLOGY is "go" in
 * the environment, the library fills in the struct of TensorFusion's Go code instead: each DeviceTopoNode has one
 * more int64_t and 80 bytes, the whole 332808 bytes. Returns INVALID_PARAM if `topology` is NULL, and SUCCESS
 * otherwise.
 */
AccelResult AccelGetAllDevicesTopology(ExtendedDeviceTopology *topology);

/*
 * Would make a partition of a device by a template. AMD's driver divides a GPU as a whole, and the partitions are
 * devices of their own here. Writes nothing and returns NOT_SUPPORTED.
 */
AccelResult AccelAssignPartition(const char *templateId, const char *deviceUUID, PartitionResult *partitionResult);

/* Would undo AccelAssignPartition. Changes nothing and returns NOT_SUPPORTED. */
AccelResult AccelRemovePartition(const char *templateId, const char *deviceUUID);

/*
 * Would bound the bytes that a workload may allocate on a device. amdgpu has no such limit.
 * Changes nothing and returns NOT_SUPPORTED.
 */
AccelResult AccelSetMemHardLimit(const char *deviceUUID, uint64_t memoryLimitBytes);

/*
 * Would bound the compute units that a workload may use, in percent. The library can set no such limit for a process
 * of another program. Changes nothing and returns NOT_SUPPORTED.
 */
AccelResult AccelSetComputeUnitHardLimit(const char *deviceUUID, uint32_t computeUnitLimit);

/* Would freeze processes and save their memory on a device. Changes nothing and returns NOT_SUPPORTED. */
AccelResult AccelSnapshot(SnapshotContext *context);

/* Would wake what AccelSnapshot froze. Changes nothing and returns NOT_SUPPORTED. */
AccelResult AccelResume(SnapshotContext *context);

/*
 * Lists what processes use of the devices, at most `maxCount` entries, and sets `*processInfoCount` to how many.
 * `processInfos` has room for `maxCount` entries. KFD lists the processes of every
 * container.
 * Returns INVALID_PARAM if a pointer that it needs
 * is NULL, and SUCCESS otherwise.
 */
AccelResult AccelGetProcessInformation(ProcessInformation *processInfos, size_t maxCount, size_t *processInfoCount);

/*
 * Reads the `deviceCount` devices that `deviceUUIDs` names, into `metrics[i]` for `deviceUUIDs[i]`. Both arrays have
 * `deviceCount` entries, and a UUID counts up to its NUL or UUID_STRING_LENGTH bytes, without regard to case. The
 * extra metric "unknown_readings" counts the fixed readings that are 0 because they are unknown; a device that went
 * away has no known one, nor has a UUID that no device had. Returns INVALID_PARAM if an array or a UUID is NULL or
 * `deviceCount` exceeds MAX_DEVICE_UUIDS, and SUCCESS otherwise.
 */
AccelResult AccelGetDeviceMetrics(const char **deviceUUIDs, size_t deviceCount, DeviceMetrics *metrics);

/*
 * Lists the folders of ROCm that a workload's container needs, at most `maxCount`, and sets `*mountCount` to how
 * many. `mounts` has room for `maxCount` entries. Returns INVALID_PARAM if a pointer that it needs is NULL, and
 * SUCCESS otherwise.
 */
AccelResult AccelGetVendorMountLibs(MountPath *mounts, size_t maxCount, size_t *mountCount);

/*
 * Sends what the library has to say to `callback` from now on, and to no one if `callback` is NULL. A call that is
 * under way in another thread may still use the callback before. Returns SUCCESS.
 */
AccelResult AccelRegisterLogCallback(LogCallbackFunc callback);

#ifdef __cplusplus
}
#endif

#endif
