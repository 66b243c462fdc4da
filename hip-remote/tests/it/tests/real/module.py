"""Adds two vectors by the kernel vadd of the code object that the first argument names."""

import array
import ctypes
import sys

from hip import hip

COUNT = 5000


def checked(result):
    status, *values = result if isinstance(result, tuple) else (result,)
    if status != hip.hipError_t.hipSuccess:
        sys.exit(f"{status}")
    return values[0] if len(values) == 1 else values


properties = checked(hip.hipGetDeviceProperties(0))
with open(sys.argv[1], "rb") as file:
    image = file.read()
module = checked(hip.hipModuleLoadData(image))
kernel = checked(hip.hipModuleGetFunction(module, b"vadd"))

a = array.array("f", (i % 17 for i in range(COUNT)))
b = array.array("f", (i % 31 for i in range(COUNT)))
c = array.array("f", bytes(4 * COUNT))
size = 4 * COUNT
device = [checked(hip.hipMalloc(size)) for _ in range(3)]
for pointer, values in zip(device, (a, b)):
    checked(hip.hipMemcpy(pointer, values, size, hip.hipMemcpyKind.hipMemcpyHostToDevice))
stream = checked(hip.hipStreamCreate())
checked(
    hip.hipModuleLaunchKernel(
        kernel,
        gridDimX=(COUNT + 255) // 256,
        gridDimY=1,
        gridDimZ=1,
        blockDimX=256,
        blockDimY=1,
        blockDimZ=1,
        sharedMemBytes=0,
        stream=stream,
        kernelParams=None,
        extra=(*device, ctypes.c_uint32(COUNT)),
    )
)
checked(hip.hipStreamSynchronize(stream))
checked(hip.hipMemcpy(c, device[2], size, hip.hipMemcpyKind.hipMemcpyDeviceToHost))
for i in range(COUNT):
    if c[i] != a[i] + b[i]:
        sys.exit(f"wrong at {i}: {c[i]}")
for pointer in device:
    checked(hip.hipFree(pointer))
checked(hip.hipStreamDestroy(stream))
checked(hip.hipModuleUnload(module))
print("ok", properties.gcnArchName)
