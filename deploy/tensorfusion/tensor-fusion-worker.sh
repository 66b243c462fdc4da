#!/bin/sh
# rocworker-hip-worker as TensorFusion calls it: `./tensor-fusion-worker -p 8000`. Clients come from other nodes, so the
# worker needs the key that the pool mounts from the secret hip-worker-key.
set -eu

key=/etc/rocworker/hip/worker.key
[ -f "$key" ] || {
    echo "tensor-fusion-worker: there is no $key: make the secret hip-worker-key in the workload's namespace" >&2
    exit 1
}
# TensorFusion preloads a limiter for another vendor's library.
unset LD_PRELOAD
exec rocworker-hip-worker --listen 0.0.0.0 --key "$key" "$@"
