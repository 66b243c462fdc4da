#!/bin/sh
# Installs TensorFusion for nodes with AMD's GPUs, and has a pod compute on a part of one. Each step says what it checks,
# and the first that fails ends the run with a sentence. docs/tensorfusion.md describes it.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
system=tensor-fusion-sys
pool=amd-gpu-pool
pod=amd-gpu-part
# The one that kubectl is configured with.
namespace=
repository=https://helm.tensor-fusion.ai
option=--chart
value=

usage() {
    cat <<END
Usage: test-amd-cluster.sh [OPTION]... NODE...

Labels the nodes, installs or upgrades TensorFusion's chart with values-amd.yaml, and applies provider-config.yaml and
tensorfusioncluster.yaml as they are beside this script. Then it checks that the nodes' GPUs are in the pool, that a pod
gets a part of one, and that metrics arrive in GreptimeDB. It builds and pushes no image, names no release of the
hypervisor, and adds nothing to the chart's list of GPUs. It needs kubectl and helm with an administrator's rights.

Each run upgrades the chart, without --chart to the newest. This sets the chart's values back to values-amd.yaml, removes
what was added to its list of GPUs, and sets both objects back to their files. On a cluster in use give its release by
--chart. The pod is deleted at the end; the rest stays.

  --chart CHART      a folder, an archive or an oci:// address of the chart (default: the newest of $repository)
  --wait SECONDS     how long each step waits for the cluster, images included (default: $wait)
  --request SECONDS  how long one call of kubectl may last (default: $request)
  -h, --help         print this

It ends with 0 when all of that holds, with 2 for wrong arguments, else with 1.
END
}

# shellcheck source-path=SCRIPTDIR source=test-steps.sh
. "$here/test-steps.sh"
chart=$value
[ "$#" -gt 0 ] || misuse "name the nodes that have AMD's GPUs"
check_names "$@"

step "kubectl, helm and timeout are there, and each node is ready"
check_programs kubectl helm timeout
check_ready "$@"

step "The operator finds the nodes by the label amdgpu.com/gpu.present=true"
for node in "$@"; do
    cluster label node "$node" --overwrite amdgpu.com/gpu.present=true || fail "the node $node cannot be labelled"
done

step "The chart is installed with values-amd.yaml, and takes AMD's objects"
# The chart's agent would call the vendor's cloud; without an id there is none.
install() {
    timeout "$((wait + request))" helm upgrade --install "$system" "$@" --namespace "$system" --create-namespace \
        --values "$here/values-amd.yaml" --set agent.agentId= --wait --timeout "${wait}s"
}
if [ -n "$chart" ]; then install "$chart"; else install tensor-fusion --repo "$repository"; fi ||
    fail "helm ended with $?: see kubectl --namespace $system get pods"
for file in provider-config.yaml tensorfusioncluster.yaml; do
    cluster apply --filename "$here/$file" || fail "$file was refused"
done

step "A hypervisor is ready on each node"
has_hypervisor() {
    hypervisors=$(cluster --namespace "$system" get pods --selector tensor-fusion.ai/component=hypervisor --output \
        'jsonpath={range .items[*]}{.spec.nodeName} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}') || return 1
    echo "$hypervisors" | grep -Fqx "$1 True"
}
for node in "$@"; do
    eventually has_hypervisor "$node" ||
        fail "no hypervisor is ready on $node: see kubectl --namespace $system describe pods"
done

step "The pool $pool has each node's GPUs, with their FP16 rate and memory"
is_pool_filled() {
    state=$(cluster get gpupool "$pool" --output 'jsonpath={.status.phase} {.status.totalGPUs}') || return 1
    case $state in
        'Running '[1-9]*) ;;
        *) return 1 ;;
    esac
}
state=
eventually is_pool_filled || fail "the pool's phase and number of GPUs are '$state': see kubectl describe gpupool $pool"
gpus=$(cluster get gpus --output 'jsonpath={range .items[*]}{.status.nodeSelector.kubernetes\.io/hostname} {.status.vendor} {.status.capacity.tflops} {.status.capacity.vram} {.metadata.name} {.status.gpuModel}{"\n"}{end}') ||
    fail "the GPUs cannot be read"
echo "$gpus"
for node in "$@"; do
    own=$(echo "$gpus" | awk -v node="$node" '$1 == node && $2 == "AMD"')
    [ -n "$own" ] || fail "no GPU of $node is AMD's: its hypervisor may run for another vendor"
    rateless=$(echo "$own" | awk '$3 + 0 == 0 { print $5 }')
    [ -z "$rateless" ] || fail "no rate is known of $rateless: add its model to provider-config.yaml"
    empty=$(echo "$own" | awk '$4 + 0 == 0 { print $5 }')
    [ -z "$empty" ] || fail "no memory is known of $empty: see the log of the hypervisor of $node"
done

step "A pod with a part of a GPU computes on it"
clear_pod
cluster apply --filename "$here/workload.yaml" || fail "workload.yaml was refused"
await_line ' 1024\.0$'

step "The scheduler has counted the part"
gpu=$(cluster get pod "$pod" --output 'jsonpath={.metadata.annotations.tensor-fusion\.ai/gpu-ids}') ||
    fail "the pod cannot be read"
[ -n "$gpu" ] || fail "the pod has no annotation tensor-fusion.ai/gpu-ids: TensorFusion's scheduler did not place it"
memory=$(cluster get gpu "$gpu" --output 'jsonpath={.status.available.vram} of {.status.capacity.vram}') ||
    fail "the GPU $gpu cannot be read"
[ "${memory% of *}" != "${memory#* of }" ] || fail "all memory of $gpu is available while the pod runs: $memory"
echo "$gpu: $memory available"

step "GreptimeDB gets rows of the GPU, of its pod and of the nodes"
database=/api/v1/namespaces/greptimedb/services/greptimedb-standalone:4000/proxy
cluster get --raw "$database/health" >/dev/null || fail "GreptimeDB does not answer"
# rows TABLE CONDITION: how many rows there are. A table is not there before its first row.
rows() {
    query=$(printf 'SELECT count(*) FROM %s WHERE %s' "$1" "$2" | sed "s/ /%20/g; s/'/%27/g; s/=/%3D/g")
    answer=$(cluster get --raw "$database/v1/sql?db=public&sql=$query" 2>/dev/null) || :
    count=$(echo "$answer" | sed -n 's/.*"rows": *\[ *\[ *\([0-9][0-9]*\).*/\1/p')
    echo "${count:-0}"
}
grows() {
    count=$(rows "$1" "$2")
    [ "$count" -gt "$3" ]
}
of_gpu="uuid = '$gpu'"
gpu_before=$(rows tf_gpu_usage "$of_gpu")
worker_before=$(rows tf_worker_usage "$of_gpu")
node_before=$(rows tf_node_metrics 1=1)
eventually grows tf_worker_usage "$of_gpu" "$worker_before" ||
    fail "tf_worker_usage gets no row of $gpu: the hypervisor sees no process of the pod, or vector sends nothing"
eventually grows tf_gpu_usage "$of_gpu" "$gpu_before" || fail "tf_gpu_usage gets no row of $gpu"
eventually grows tf_node_metrics 1=1 "$node_before" || fail "tf_node_metrics gets no row: the operator writes it"

echo "All $number steps passed."
