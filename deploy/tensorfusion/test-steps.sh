# What test-amd-cluster.sh and test-amd-remote-gpu.sh share. Both source it with their arguments, when they have said their
# `usage`, the `pod` that computes, the `option` of their own with its `value`, and kubectl's `namespace`, if any.
# shellcheck shell=sh

wait=900
request=30
number=0

misuse() {
    echo "${0##*/}: $1; see --help" >&2
    exit 2
}

fail() {
    echo "${0##*/}: step $number failed: $1" >&2
    exit 1
}

# step WHAT-IT-CHECKS: begins a step.
step() {
    number=$((number + 1))
    echo "== $number. $1"
}

# cluster ARGUMENT...: kubectl, which may not last for ever.
cluster() {
    timeout "$request" kubectl "--request-timeout=${request}s" ${namespace:+--namespace "$namespace"} "$@" && return 0
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
        sleep "$((wait < 5 ? 1 : 5))"
    done
}

number_of() {
    case $2 in
        '' | *[!0-9]* | 0* | ???????*) misuse "$1 needs a number of seconds" ;;
        *) echo "$2" ;;
    esac
}

# check_names NAME...: of nodes and of a namespace, which are arguments.
check_names() {
    for name in "$@"; do
        case $name in
            -*) misuse "options come before the nodes, unlike '$name'" ;;
            '' | *[!a-z0-9.-]*) misuse "'$name' is no name of a node or a namespace" ;;
            *) ;;
        esac
    done
}

check_programs() {
    for program in "$@"; do
        command -v "$program" >/dev/null || fail "$program is not installed"
    done
}

# check_ready NODE...
check_ready() {
    for node in "$@"; do
        ready=$(cluster get node "$node" --output 'jsonpath={.status.conditions[?(@.type=="Ready")].status}') ||
            fail "the node $node cannot be read"
        [ "$ready" = True ] || fail "the node $node is not ready"
    done
}

# clear_pod: deletes the pod now and at the end.
clear_pod() {
    trap 'exit 130' INT TERM
    trap 'cluster delete pod "$pod" --ignore-not-found --wait=false >/dev/null || echo "the pod $pod is still there" >&2' EXIT
    cluster delete pod "$pod" --ignore-not-found || fail "the pod of an earlier run cannot be deleted"
}

has_line() {
    line=$1
    shift
    phase=$(cluster get pod "$pod" --output 'jsonpath={.status.phase}') || return 1
    [ "$phase" != Failed ] || fail "the pod failed: $(cluster logs "$pod" "$@" --tail 5 2>&1 || :)"
    said=$(cluster logs "$pod" "$@" 2>/dev/null) && echo "$said" | grep "$line"
}

# await_line LINE ARGUMENT...: until the pod's log has the line. The arguments say which log kubectl shows.
await_line() {
    phase=unknown
    said=
    eventually has_line "$@" || {
        cluster get events --field-selector "involvedObject.name=$pod" >&2 || :
        fail "the pod is $phase and has not computed: its events are above"
    }
}

while [ "$#" -gt 0 ]; do
    case $1 in
        -h | --help) usage && exit 0 ;;
        "$option" | --wait | --request)
            [ "$#" -gt 1 ] || misuse "$1 needs a value"
            case $1 in
                --wait) wait=$(number_of "$1" "$2") ;;
                --request) request=$(number_of "$1" "$2") ;;
                *) value=$2 ;;
            esac
            shift 2
            ;;
        -*) misuse "there is no '$1'" ;;
        *) break ;;
    esac
done
