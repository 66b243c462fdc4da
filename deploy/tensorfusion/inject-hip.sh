#!/bin/sh
# Puts HIP's libraries into TensorFusion's two volumes of a pod, and ends. The pod's containers have the first volume at
# /tensor-fusion, and of the second the file ld.so.preload in /etc and zz_tensor-fusion.conf in /etc/ld.so.conf.d.
# Without a file the kubelet would make a folder of its name, and ld.so would complain in each process.
set -eu

release=${ROCM:-7}
library=libamdhip64.so.$release
preload=
path=

# In a pod with a GPU of its own node the image's HIP library is the right one.
if [ "${RUN_INSIDE_GPU_NODE:-}" != true ]; then
    [ -f "/build/lib/$library" ] || {
        echo "inject-hip.sh: ROCM=$release: this image has no $library; give 5, 6 or 7" >&2
        exit 1
    }
    cp -P /build/lib/* /tensor-fusion/
    # By the name that a program needs, so that it stands for that library wherever the program would look for it.
    preload=/tensor-fusion/$library
    path=/tensor-fusion
fi

# TensorFusion had both files in /tensor-fusion before it made a folder for them.
for folder in /tensor-fusion-conf /tensor-fusion; do
    if [ -d "$folder" ]; then
        echo "$preload" >"$folder/ld.so.preload"
        echo "$path" >"$folder/zz_tensor-fusion.conf"
    fi
done
