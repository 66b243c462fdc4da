// SPDX-License-Identifier: Apache-2.0

// Loads a provider as TensorFusion's hypervisor does, and prints what it gets:
//
//	provider [-topology c|go] -abi FILE LIBRARY
//
// One `key: value` a line on stdout, as tests/c/dump.c prints them; the provider's log on stderr. It ends with 1 where the
// hypervisor would panic or refuse the provider, and where Go lays a struct out in another way than FILE says.
package main

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// The hypervisor's buffers.
const (
	maxDevices   = 64
	maxProcesses = 1024
	maxMounts    = 64
)

var (
	accelInit               func() int32
	accelShutdown           func() int32
	getDeviceCount          func(*uintptr) int32
	getAllDevices           func(unsafe.Pointer, uintptr, *uintptr) int32
	getAllDevicesTopology   func(unsafe.Pointer) int32
	assignPartition         func(*byte, *byte, unsafe.Pointer) int32
	removePartition         func(*byte, *byte) int32
	setMemHardLimit         func(*byte, uint64) int32
	setComputeUnitHardLimit func(*byte, uint32) int32
	snapshot                func(unsafe.Pointer) int32
	resume                  func(unsafe.Pointer) int32
	getProcessInformation   func(unsafe.Pointer, uintptr, *uintptr) int32
	getDeviceMetrics        func(**byte, uintptr, unsafe.Pointer) int32
	getVendorMountLibs      func(unsafe.Pointer, uintptr, *uintptr) int32
	registerLogCallback     func(uintptr) int32
)

func main() {
	topology := flag.String("topology", "c", "whose DeviceTopoNode the provider is asked for")
	abi := flag.String("abi", "", "the measured ABI, a file of JSON")
	flag.Parse()
	if flag.NArg() != 1 || (*topology != "c" && *topology != "go") {
		fail("usage: provider [-topology c|go] -abi FILE LIBRARY")
	}
	structs := readABI(*abi, *topology == "go")
	load(flag.Arg(0))

	uuids := listDevices(structs.array("ExtendedDeviceInfo", maxDevices))
	listTopology(structs.array("ExtendedDeviceTopology", 1))
	listMetrics(structs.array("DeviceMetrics", maxDevices), uuids)
	list("processInfo", "AccelGetProcessInformation", getProcessInformation, structs.array("ProcessInformation", maxProcesses))
	list("mount", "AccelGetVendorMountLibs", getVendorMountLibs, structs.array("MountPath", maxMounts))
	askForMore(structs, append(uuids, "gpu-0")[0])

	// In the order in which the hypervisor ends.
	result("AccelShutdown", accelShutdown())
	if code := registerLogCallback(0); code != 0 {
		fail("AccelRegisterLogCallback(NULL) gives %d", code)
	}
}

func load(library string) {
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		fail("%v", err)
	}
	for name, function := range map[string]any{
		"AccelInit":                    &accelInit,
		"AccelShutdown":                &accelShutdown,
		"AccelGetDeviceCount":          &getDeviceCount,
		"AccelGetAllDevices":           &getAllDevices,
		"AccelGetAllDevicesTopology":   &getAllDevicesTopology,
		"AccelAssignPartition":         &assignPartition,
		"AccelRemovePartition":         &removePartition,
		"AccelSetMemHardLimit":         &setMemHardLimit,
		"AccelSetComputeUnitHardLimit": &setComputeUnitHardLimit,
		"AccelSnapshot":                &snapshot,
		"AccelResume":                  &resume,
		"AccelGetProcessInformation":   &getProcessInformation,
		"AccelGetDeviceMetrics":        &getDeviceMetrics,
		"AccelGetVendorMountLibs":      &getVendorMountLibs,
		"AccelRegisterLogCallback":     &registerLogCallback,
	} {
		purego.RegisterLibFunc(function, handle, name)
	}
	result("AccelRegisterLogCallback", registerLogCallback(purego.NewCallback(logged)))
	result("AccelInit", accelInit())
}

// The hypervisor ends with the log level FATAL.
func logged(level, message *byte) {
	word := text(level)
	fmt.Fprintf(os.Stderr, "log %s: %s\n", word, text(message))
	if strings.EqualFold(word, "FATAL") {
		fail("the provider ends the hypervisor by its log")
	}
}

func listDevices(devices reflect.Value) []string {
	var count uintptr
	result("AccelGetDeviceCount", getDeviceCount(&count))
	fmt.Printf("deviceCount: %d\n", count)
	maximum := min(count, maxDevices)
	count = 0
	result("AccelGetAllDevices", getAllDevices(devices.Addr().UnsafePointer(), maximum, &count))
	atMost(count, maximum, "devices")
	var uuids []string
	for i := range int(count) {
		show(fmt.Sprintf("devices[%d]", i), devices.Index(i))
		uuids = append(uuids, string(upToNUL("uuid", bytes(field(field(devices.Index(i), "basic"), "uuid")))))
	}
	return uuids
}

func listTopology(topology reflect.Value) {
	// The hypervisor goes on without a topology.
	code := getAllDevicesTopology(topology.Addr().UnsafePointer())
	fmt.Printf("AccelGetAllDevicesTopology: %d\n", code)
	if code == 0 {
		show("topology", topology.Index(0))
	}
}

func listMetrics(metrics reflect.Value, uuids []string) {
	asked := make([]*byte, len(uuids))
	for i, uuid := range uuids {
		asked[i] = cString(uuid)
	}
	code := getDeviceMetrics(unsafe.SliceData(asked), uintptr(len(asked)), metrics.Addr().UnsafePointer())
	runtime.KeepAlive(asked)
	result("AccelGetDeviceMetrics", code)
	for i := range uuids {
		show(fmt.Sprintf("metrics[%d]", i), metrics.Index(i))
	}
}

func list(what, name string, function func(unsafe.Pointer, uintptr, *uintptr) int32, entries reflect.Value) {
	var count uintptr
	result(name, function(entries.Addr().UnsafePointer(), uintptr(entries.Len()), &count))
	fmt.Printf("%sCount: %d\n", what, count)
	atMost(count, uintptr(entries.Len()), what+"s")
	for i := range int(count) {
		show(fmt.Sprintf("%ss[%d]", what, i), entries.Index(i))
	}
}

// askForMore calls what the hypervisor calls for partitions, limits and snapshots.
func askForMore(structs types, uuid string) {
	device, template := cString(uuid), cString("template")
	partition := structs.array("PartitionResult", 1)
	code := assignPartition(template, device, partition.Addr().UnsafePointer())
	fmt.Printf("AccelAssignPartition: %d\n", code)
	if code == 0 {
		show("partition", partition.Index(0))
	}
	fmt.Printf("AccelRemovePartition: %d\n", removePartition(template, device))
	fmt.Printf("AccelSetMemHardLimit: %d\n", setMemHardLimit(device, 1<<30))
	fmt.Printf("AccelSetComputeUnitHardLimit: %d\n", setComputeUnitHardLimit(device, 50))
	context := structs.array("SnapshotContext", 1)
	field(context.Index(0), "deviceUUID").SetPointer(unsafe.Pointer(device))
	fmt.Printf("AccelSnapshot: %d\n", snapshot(context.Addr().UnsafePointer()))
	fmt.Printf("AccelResume: %d\n", resume(context.Addr().UnsafePointer()))
	runtime.KeepAlive(context)
}

func cString(text string) *byte {
	return &append([]byte(text), 0)[0]
}

func text(start *byte) string {
	if start == nil {
		return "(null)"
	}
	length := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(start), length)) != 0 {
		length++
	}
	return string(unsafe.Slice(start, length))
}

func result(name string, code int32) {
	fmt.Printf("%s: %d\n", name, code)
	if code != 0 {
		fail("%s gives %d, where the hypervisor goes on with 0 alone", name, code)
	}
}

func atMost(count, maximum uintptr, what string) {
	if count > maximum {
		fail("%d %s, where there is room for %d: the hypervisor panics", count, what, maximum)
	}
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "provider: "+format+"\n", arguments...)
	os.Exit(1)
}
