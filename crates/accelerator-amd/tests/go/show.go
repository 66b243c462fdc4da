// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"reflect"
	"strconv"
	"unsafe"
)

// counts names the field that says how many elements of an array are filled.
var counts = map[string]string{
	"properties":   "count",
	"peers":        "peerCount",
	"devices":      "deviceCount",
	"extraMetrics": "extraMetricsCount",
}

// show prints a value, a line for each scalar and string: fields by their names in C, in C's order.
func show(key string, value reflect.Value) {
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			name := string(value.Type().Field(i).Tag)
			inner := value.Field(i)
			if count, ok := counts[name]; ok {
				filled := field(value, count).Uint()
				atMost(uintptr(filled), uintptr(inner.Len()), key+"."+name)
				inner = inner.Slice(0, int(filled))
			}
			show(key+"."+name, inner)
		}
	case reflect.Array, reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			fmt.Printf("%s: %s\n", key, escaped(upToNUL(key, bytes(value))))
			return
		}
		for i := range value.Len() {
			show(fmt.Sprintf("%s[%d]", key, i), value.Index(i))
		}
	case reflect.Bool:
		// Go and C take for granted that a bool is 0 or 1.
		if raw := *(*byte)(value.Addr().UnsafePointer()); raw > 1 {
			fail("%s is the byte %d, which is no bool", key, raw)
		}
		fmt.Printf("%s: %t\n", key, value.Bool())
	case reflect.Float64:
		fmt.Printf("%s: %s\n", key, strconv.FormatFloat(value.Float(), 'f', -1, 64))
	default:
		fmt.Printf("%s: %v\n", key, value)
	}
}

func field(value reflect.Value, name string) reflect.Value {
	for i := range value.NumField() {
		if string(value.Type().Field(i).Tag) == name {
			return value.Field(i)
		}
	}
	fail("%s has no field %s", value.Type(), name)
	return reflect.Value{}
}

func bytes(array reflect.Value) []byte {
	return unsafe.Slice((*byte)(array.Addr().UnsafePointer()), array.Len())
}

func upToNUL(key string, characters []byte) []byte {
	for i, character := range characters {
		if character == 0 {
			return characters[:i]
		}
	}
	fail("%s does not end in its %d bytes", key, len(characters))
	return nil
}

// escaped keeps a text in its line.
func escaped(text []byte) []byte {
	var shown []byte
	for _, character := range text {
		if character < 0x20 || character == 0x7f || character == '\\' {
			shown = fmt.Appendf(shown, "\\x%02x", character)
		} else {
			shown = append(shown, character)
		}
	}
	return shown
}
