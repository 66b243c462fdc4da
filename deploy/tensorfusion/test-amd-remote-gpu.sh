#!/bin/sh
# Has a pod on a node without a GPU compute on a GPU of another node, through TensorFusion. Each step says what it checks,
# and the first that fails ends the run with a sentence. docs/hip-remote.md describes it.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
pod=amd-remote-gpu
option=--namespace
value=default

usage() {
    cat <<END
Usage: test-amd-remote-gpu.sh [OPTION]... GPU-NODE OTHER-NODE

Labels GPU-NODE with tensor-fusion.ai/gpu-worker=true, so that workers may run on it, and runs the pod of
remote-workload.yaml on OTHER-NODE. It checks that a worker runs on GPU-NODE, and that PyTorch in the pod names its GPU and
computes on it. test-amd-cluster.sh has made the cluster before. It needs kubectl with an administrator's rights, and in
the namespace the secrets hip-worker-key and hip-client-key.

The pod is deleted at the end; the label stays.

  --namespace NAME   where the pod runs (default: $value)
  --wait SECONDS     how long each step waits for the cluster, images included (default: $wait)
  --request SECONDS  how long one call of kubectl may last (default: $request)
  -h, --help         print this

It ends with 0 when all of that holds, with 2 for wrong arguments, else with 1.
END
}

# shellcheck source-path=SCRIPTDIR source=test-steps.sh
. "$here/test-steps.sh"
namespace=$value
[ "$#" -eq 2 ] || misuse "name the node that has the GPU, and one that has none"
check_names "$namespace" "$@"
gpu_node=$1
other_node=$2
[ "$gpu_node" != "$other_node" ] || misuse "the pod must run on another node than the worker"

step "kubectl and timeout are there, both nodes are ready, and the key's two secrets are made"
check_programs kubectl timeout
check_ready "$gpu_node" "$other_node"
for secret in hip-worker-key hip-client-key; do
    cluster get secret "$secret" --output name ||
        fail "the namespace $namespace has no secret $secret: docs/hip-remote.md has the commands that make it"
done

step "Workers may run on $gpu_node, by the label tensor-fusion.ai/gpu-worker=true"
cluster label node "$gpu_node" --overwrite tensor-fusion.ai/gpu-worker=true ||
    fail "the node $gpu_node cannot be labelled"

step "TensorFusion takes the pod, which runs on $other_node"
clear_pod
sed "s|^    kubernetes.io/hostname: NODE\$|    kubernetes.io/hostname: $other_node|" "$here/remote-workload.yaml" |
    cluster apply --filename - || fail "remote-workload.yaml was refused"

step "The pod's worker runs on $gpu_node"
has_worker() {
    # Other pods have workers of their own.
    workload=$(cluster get pod "$pod" --output 'jsonpath={.metadata.annotations.tensor-fusion\.ai/selected-workload}') &&
        [ -n "$workload" ] || return 1
    workers=$(cluster get pods --selector "tensor-fusion.ai/component=worker,tensor-fusion.ai/workload=$workload" --output \
        'jsonpath={range .items[*]}{.spec.nodeName} {.status.phase}{"\n"}{end}') || return 1
    echo "$workers" | grep -Fqx "$gpu_node Running"
}
workers=
eventually has_worker ||
    fail "no worker runs on $gpu_node: see kubectl --namespace $namespace describe pods --selector tensor-fusion.ai/component=worker"

step "PyTorch in the pod sees a GPU, and computes on it"
await_line '^1024\.0$' --container rocm

step "The GPU that PyTorch names is one of $gpu_node"
named=$(echo "$said" | sed -n 's/^True //p' | head -n 1)
[ -n "$named" ] || fail "PyTorch sees no GPU: $said"
models=$(cluster get gpus --output 'jsonpath={range .items[*]}{.status.nodeSelector.kubernetes\.io/hostname} {.status.gpuModel}{"\n"}{end}') ||
    fail "the GPUs cannot be read"
echo "$models" | grep -Fqx "$gpu_node $named" ||
    fail "PyTorch names '$named', and $gpu_node has: $(echo "$models" | grep "^$gpu_node " || echo none)"

echo "All $number steps passed."
