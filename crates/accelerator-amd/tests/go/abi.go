// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"unsafe"
)

// A file of the measured ABI.
type measured struct {
	Structs   map[string]layout `json:"structs"`
	Enums     map[string]any    `json:"enums"`
	Constants map[string]int    `json:"constants"`
}

type layout struct {
	Size   uintptr `json:"size"`
	Align  int     `json:"align"`
	Fields []struct {
		Name   string  `json:"name"`
		Offset uintptr `json:"offset"`
		Size   uintptr `json:"size"`
		Type   string  `json:"type"`
	} `json:"fields"`
}

// types are Go's structs by their names in C. Each field has its name in C as its tag.
type types map[string]reflect.Type

// readABI makes Go's structs of the measured ones, each laid out by Go's own rules, and compares every size and offset.
func readABI(file string, ofGo bool) types {
	content, err := os.ReadFile(file)
	if err != nil {
		fail("%v", err)
	}
	var abi measured
	if err := json.Unmarshal(content, &abi); err != nil {
		fail("%s: %v", file, err)
	}
	// Computed in the header, so that it is no constant of the file.
	abi.Constants["MAX_PARTITION_DEVICE_NODE_LENGTH"] = 2*abi.Constants["MAX_MOUNT_PATH"] + 2
	if ofGo {
		abi.widenTopology()
	}
	made := types{}
	for name := range abi.Structs {
		abi.define(name, made)
	}
	return made
}

// widenTopology gives DeviceTopoNode the field that the hypervisor's Go has and the C header lacks. The numbers are those
// of the hypervisor's structs.
func (abi measured) widenTopology() {
	node, device, all := abi.Structs["DeviceTopoNode"], abi.Structs["DeviceTopologyInfo"], abi.Structs["ExtendedDeviceTopology"]
	bandwidth := node.Fields[0]
	bandwidth.Name, bandwidth.Offset, bandwidth.Size, bandwidth.Type = "bandwidthBytesPerSec", 72, 8, "int64_t"
	node.Fields = append(node.Fields, bandwidth)
	node.Size, node.Align = 80, 8
	device.Size, device.Fields[3].Size, device.Fields[4].Offset = 5200, 64*80, 5192
	all.Size, all.Fields[0].Size, all.Fields[1].Offset = 332808, 332800, 332800
	abi.Structs["DeviceTopoNode"], abi.Structs["DeviceTopologyInfo"], abi.Structs["ExtendedDeviceTopology"] = node, device, all
}

func (abi measured) define(name string, made types) reflect.Type {
	if known, ok := made[name]; ok {
		return known
	}
	expected, ok := abi.Structs[name]
	if !ok {
		fail("the ABI has no type %s", name)
	}
	var fields []reflect.StructField
	for i, field := range expected.Fields {
		tag := reflect.StructTag(field.Name)
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: abi.typed(field.Type, made), Tag: tag})
	}
	defined := reflect.StructOf(fields)
	same(name+"'s size", defined.Size(), expected.Size)
	same(name+"'s alignment", uintptr(defined.Align()), uintptr(expected.Align))
	for i, field := range expected.Fields {
		same(name+"."+field.Name+"'s offset", defined.Field(i).Offset, field.Offset)
		same(name+"."+field.Name+"'s size", defined.Field(i).Type.Size(), field.Size)
	}
	made[name] = defined
	return defined
}

var scalars = map[string]reflect.Type{
	"bool":        reflect.TypeFor[bool](),
	"char":        reflect.TypeFor[byte](),
	"int32_t":     reflect.TypeFor[int32](),
	"int64_t":     reflect.TypeFor[int64](),
	"uint32_t":    reflect.TypeFor[uint32](),
	"uint64_t":    reflect.TypeFor[uint64](),
	"size_t":      reflect.TypeFor[uintptr](),
	"double":      reflect.TypeFor[float64](),
	"pid_t*":      reflect.TypeFor[unsafe.Pointer](),
	"const char*": reflect.TypeFor[unsafe.Pointer](),
}

// typed is Go's type for one of C: a scalar, an enum, a struct, or an array with its lengths in brackets.
func (abi measured) typed(name string, made types) reflect.Type {
	if element, lengths, ok := strings.Cut(name, "["); ok {
		first, others, _ := strings.Cut(lengths, "]")
		return reflect.ArrayOf(abi.length(first), abi.typed(element+others, made))
	}
	if scalar, ok := scalars[name]; ok {
		return scalar
	}
	if _, ok := abi.Enums[name]; ok {
		return scalars["int32_t"]
	}
	return abi.define(name, made)
}

func (abi measured) length(text string) int {
	if constant, ok := abi.Constants[text]; ok {
		return constant
	}
	var number int
	if _, err := fmt.Sscanf(text, "%d", &number); err != nil {
		fail("the ABI has no constant %s", text)
	}
	return number
}

func same(what string, found, expected uintptr) {
	if found != expected {
		fail("%s is %d in Go and %d in C", what, found, expected)
	}
}

// array is room for so many structs of a name, all zero.
func (made types) array(name string, length int) reflect.Value {
	return reflect.New(reflect.ArrayOf(length, made[name])).Elem()
}
