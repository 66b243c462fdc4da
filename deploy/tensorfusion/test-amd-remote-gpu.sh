#!/bin/sh
# Has a pod on a node without a GPU compute on a GPU of another node, through TensorFusion. Each step says what it checks,
# and the first that fails ends the run with a sentence. docs/hip-remote.md describes it.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
pod=amd-remote-gpu
namespace=default
wait=900
request=30
number=0

usage() {
    cat <<END
Usage: test-amd-remote-gpu.sh [OPTION]... GPU-NODE OTHER-NODE

Labels GPU-NODE with tensor-fusion.ai/gpu-worker=true, so that workers may run on it, and runs the pod of
remote-workload.yaml on OTHER-NODE. It checks that a worker runs on GPU-NODE, and that PyTorch in the pod names its GPU and
computes on it. test-amd-cluster.sh has made the cluster before. It needs kubectl with an administrator's rights, and in
the namespace the secrets hip-worker-key and hip-client-key.

The pod is deleted at the end; the label stays.

  --namespace NAME   where the pod runs (default: $namespace)
  --wait SECONDS     how long each step waits for the cluster, images included (default: $wait)
  --request SECONDS  how long one call of kubectl may last (default: $request)
  -h, --help         print this

It ends with 0 when all of that holds, with 2 for wrong arguments, else with 1.
END
}

misuse() {
    echo "test-amd-remote-gpu.sh: $1; see --help" >&2
    exit 2
}

fail() {
    echo "test-amd-remote-gpu.sh: step $number failed: $1" >&2
    exit 1
}

# step WHAT-IT-CHECKS: begins a step.
step() {
    number=$((number + 1))
    echo "== $number. $1"
}

# cluster ARGUMENT...: kubectl in the namespace, which may not last for ever.
cluster() {
    timeout "$request" kubectl "--request-timeout=${request}s" --namespace "$namespace" "$@" && return 0
    set -- "$?" "$1"
    [ "$1" -ne 124 ] || echo "kubectl $2 gave no answer within $request s" >&2
    return "$1"
}

# eventually TEST ARGUMENT...: repeats a test until it holds, and fails when the time is over. A test that can no longer
# hold ends the run by itself.
eventually() {
    end=$(($(date +%s) + wait))
    until "$@"; do
        [ "$(date +%s)" -lt "$end" ] || return 1
        sleep "$pause"
    done
}

number_of() {
    case $2 in
        '' | *[!0-9]* | 0* | ???????*) misuse "$1 needs a number of seconds" ;;
        *) echo "$2" ;;
    esac
}

while [ "$#" -gt 0 ]; do
    case $1 in
        -h | --help) usage && exit 0 ;;
        --namespace | --wait | --request)
            [ "$#" -gt 1 ] || misuse "$1 needs a value"
            case $1 in
                --namespace) namespace=$2 ;;
                --wait) wait=$(number_of "$1" "$2") ;;
                *) request=$(number_of "$1" "$2") ;;
            esac
            shift 2
            ;;
        -*) misuse "there is no '$1'" ;;
        *) break ;;
    esac
done
[ "$#" -eq 2 ] || misuse "name the node that has the GPU, and one that has none"
for name in "$namespace" "$@"; do
    case $name in
        -*) misuse "options come before the nodes, unlike '$name'" ;;
        '' | *[!a-z0-9.-]*) misuse "'$name' is no name of a node or a namespace" ;;
        *) ;;
    esac
done
gpu_node=$1
other_node=$2
[ "$gpu_node" != "$other_node" ] || misuse "the pod must run on another node than the worker"
pause=$((wait < 5 ? 1 : 5))

step "kubectl and timeout are there, both nodes are ready, and the key's two secrets are made"
for program in kubectl timeout; do
    command -v "$program" >/dev/null || fail "$program is not installed"
done
for node in "$gpu_node" "$other_node"; do
    ready=$(cluster get node "$node" --output 'jsonpath={.status.conditions[?(@.type=="Ready")].status}') ||
        fail "the node $node cannot be read"
    [ "$ready" = True ] || fail "the node $node is not ready"
done
for secret in hip-worker-key hip-client-key; do
    cluster get secret "$secret" --output name ||
        fail "the namespace $namespace has no secret $secret: docs/hip-remote.md has the commands that make it"
done

step "Workers may run on $gpu_node, by the label tensor-fusion.ai/gpu-worker=true"
cluster label node "$gpu_node" --overwrite tensor-fusion.ai/gpu-worker=true ||
    fail "the node $gpu_node cannot be labelled"

step "TensorFusion takes the pod, which runs on $other_node"
trap 'exit 130' INT TERM
trap 'cluster delete pod "$pod" --ignore-not-found --wait=false >/dev/null || echo "the pod $pod is still there" >&2' EXIT
cluster delete pod "$pod" --ignore-not-found || fail "the pod of an earlier run cannot be deleted"
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
has_computed() {
    phase=$(cluster get pod "$pod" --output 'jsonpath={.status.phase}') || return 1
    [ "$phase" != Failed ] || fail "the pod failed: $(cluster logs "$pod" --container rocm --tail 5 2>&1 || :)"
    said=$(cluster logs "$pod" --container rocm 2>/dev/null) && echo "$said" | grep '^1024\.0$'
}
phase=unknown
said=
eventually has_computed || {
    cluster get events --field-selector "involvedObject.name=$pod" >&2 || :
    fail "the pod is $phase and has not computed: its events are above"
}

step "The GPU that PyTorch names is one of $gpu_node"
named=$(echo "$said" | sed -n 's/^True //p' | head -n 1)
[ -n "$named" ] || fail "PyTorch sees no GPU: $said"
models=$(cluster get gpus --output 'jsonpath={range .items[*]}{.status.nodeSelector.kubernetes\.io/hostname} {.status.gpuModel}{"\n"}{end}') ||
    fail "the GPUs cannot be read"
echo "$models" | grep -Fqx "$gpu_node $named" ||
    fail "PyTorch names '$named', and $gpu_node has: $(echo "$models" | grep "^$gpu_node " || echo none)"

echo "All $number steps passed."
