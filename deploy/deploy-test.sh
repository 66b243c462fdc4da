#!/usr/bin/env bash
# Deploys a Concourse worker with AMD's GPUs by Juju, and has Concourse check that its tasks can use them.
# Each step says what it is for, shows its commands, and is checked before the next one begins.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly examples=$here/../charm/examples

dry_run=false
rocm_tools=false
worker=concourse-worker
web=
charm=$here/../target/dist/charm/rocworker_ubuntu@24.04-amd64.charm
target=rocworker-test
url=
number=0

usage() {
    cat <<END
Usage: deploy-test.sh --url URL [OPTION]...

Deploys a Concourse worker with AMD's GPUs by Juju, and has Concourse check that its tasks can use them. It needs juju
with a controller, fly, and a Concourse whose web is deployed. A second run changes only what is missing. Juju's own
variable JUJU_MODEL names another model than the current one.

  --url URL      where Concourse's web answers
  --web NAME     the web's application: a worker that is not deployed yet is, and is related to it
  --worker NAME  the worker's application (default: $worker)
  --charm FILE   rocworker's packed charm (default: what charmcraft pack makes for Ubuntu 24.04)
  --rocm-tools   run rocm-smi and rocminfo in a task, too: their image has several GB
  --target NAME  fly's name for the Concourse (default: $target)
  --dry-run      print the steps and their commands, and run none of them
  --help         print this

It ends with 0 when a task on the worker could use the GPUs, with 2 for wrong arguments, else with 1.
END
}

misuse() {
    printf 'deploy-test.sh: %s; see --help\n' "$1" >&2
    exit 2
}

fail() {
    printf 'deploy-test.sh: step %s failed: %s\n' "$number" "$1" >&2
    exit 1
}

# step NAME WHY: begins a step.
step() {
    number=$((number + 1))
    printf '\n== %s. %s\n   %s\n' "$number" "$1" "$2"
}

# run WHAT-TO-DO COMMAND...: shows a command as it could be typed, and runs it unless this is a dry run.
run() {
    local remedy=$1
    shift
    printf '   $'
    printf ' %q' "$@"
    printf '\n'
    $dry_run || "$@" || fail "$1 ended with $?: $remedy"
}

# expect PATTERN WHAT-TO-DO COMMAND...: runs a command whose output, `said`, must have a line like that.
said=
expect() {
    local pattern=$1
    shift
    # A terminal, as juju ssh has one, ends its lines with \r.
    said=$(run "$@" | tr -d '\r') || exit 1
    printf '%s\n' "$said"
    $dry_run || grep -qE -- "$pattern" <<<"$said" || fail "nothing in its output is like '$pattern': $1"
}

# relate ENDPOINT ENDPOINT
relate() {
    run "Juju before 3.0 calls it 'juju relate'" juju integrate "$1" "$2"
}

# wait_for APPLICATION: until Juju calls it active.
wait_for() {
    run "juju status $1 says what is to be done" juju wait-for application "$1" --query 'status=="active"' --timeout 20m
}

while (($#)); do
    option=$1
    shift
    case $option in
    --help) usage && exit 0 ;;
    --dry-run) dry_run=true && continue ;;
    --rocm-tools) rocm_tools=true && continue ;;
    --url | --web | --worker | --charm | --target) ;;
    *) misuse "there is no '$option'" ;;
    esac
    if (($# == 0)) || [[ -z $1 || $1 == -* ]]; then misuse "$option needs a value"; fi
    printf -v "${option#--}" %s "$1"
    shift
done
# Without a folder juju takes it for the name of a charm in its store.
[[ $charm == */* ]] || charm=./$charm
[[ $worker$web =~ ^[a-z0-9-]+$ ]] || misuse "--worker and --web have to be names of applications"
[[ $url =~ ^https?://[^[:space:]]+$ ]] || misuse "--url has to be an http or https address"

step "What is needed" "juju and fly, and rocworker's charm."
if ! $dry_run; then
    for tool in juju fly; do
        command -v "$tool" >/dev/null || fail "$tool is in no folder of PATH: install it"
    done
    [[ -f $charm ]] || fail "there is no $charm: pack the charm as docs/charm.md says, or name one with --charm"
fi

step "The worker" "Concourse's own charm, without its AMD mode: rocworker, which joins it, is told compute-runtime=rocm."
if $dry_run || ! juju show-application "$worker" >/dev/null 2>&1; then
    [[ -n $web ]] || $dry_run || fail "there is no application $worker: --web names the web that a new one joins"
    run "juju debug-log tells why" juju deploy concourse-ci-machine "$worker" --channel edge --config mode=worker
fi
if [[ -n $web ]]; then
    expect '' "juju status $worker tells why" juju status "$worker" --relations
    # The columns: provider, requirer.
    grep -qE "(^|[[:space:]])$web:tsa[[:space:]]+$worker:flight([[:space:]]|$)" <<<"$said" || relate "$web:tsa" "$worker:flight"
fi
wait_for "$worker"
expect "^$worker/[0-9]+" "is $worker the name of the worker's application? --worker names another" juju status "$worker"
mapfile -t units < <(grep -oE "^$worker/[0-9]+" <<<"$said")
if $dry_run; then units=("$worker/0"); fi

step "The devices" "LXD passes AMD's cards and /dev/kfd into the worker's container: those alone, not every vendor's."
for unit in "${units[@]}"; do
    expect '^[A-Za-z0-9-]+$' "is $unit reached? juju status tells" juju ssh "$unit" hostname
    container=$(tail -n 1 <<<"$said")
    if $dry_run; then
        run '' rocworker lxd advise --client lxc --container CONTAINER
        printf '   and runs the commands that this prints\n'
    elif command -v lxc >/dev/null && lxc info "$container" >/dev/null 2>&1; then
        expect '^lxc config device add ' "the lines with # say why no card can be passed" \
            rocworker lxd advise --client lxc --container "$container"
        there=$(lxc config device list "$container") || fail "lxc ended with $?: lxc list tells of $container"
        while read -ra command <&3; do
            if [[ ${command[*]} == 'lxc config device add '* ]] && ! grep -qxF -- "${command[5]}" <<<"$there"; then
                run "lxc config device show $container tells what it has" "${command[@]}"
            fi
        done 3<<<"$said"
    else
        printf '   %s is no container of this host: its GPUs are its own, or another host passes them\n' "$container"
    fi
done

step "The charm" "A subordinate: it joins the worker's machine. A second run refreshes it, and relates it if need be."
if ! $dry_run && juju show-application rocworker >/dev/null 2>&1; then
    run "juju status rocworker tells why" juju refresh rocworker --path "$charm"
else
    run "juju debug-log tells why" juju deploy "$charm" rocworker --config compute-runtime=rocm \
        --config concourse-tags=true
fi
# A run that ended between the two has left the application without its relation.
expect '' "juju status rocworker tells why" juju status rocworker --relations
grep -qE "(^|[[:space:]])$worker:juju-info[[:space:]]+rocworker:host([[:space:]]|$)" <<<"$said" ||
    relate "rocworker:host" "$worker:juju-info"

step "The GPUs" "The charm says how many it offers, or what is to be done."
wait_for rocworker
expect '\(GPU: [1-9][0-9]*x AMD\)' "juju status rocworker says what is to be done" juju status rocworker

step "Concourse" "fly asks for a login only where it has none. The worker now has the tags of its GPUs."
if $dry_run || ! fly --target "$target" status >/dev/null 2>&1; then
    run "is $url Concourse's web?" fly --target "$target" login --concourse-url "$url"
fi
expect 'compute-runtime=rocm' "the worker has no tag of a GPU yet: rocworker status on it tells of a restart" \
    fly --target "$target" workers

# task FILE: has a worker with the tags run a task, which fails where a line of its output begins with a cross.
task() {
    run "the lines with a cross say what is missing" timeout 20m \
        fly --target "$target" execute --config "$examples/$1" --tag gpu --tag compute-runtime=rocm
}

step "The task" "It runs on the worker, in an image without ROCm, and opens the devices that it was given."
task verify-gpu-amd.yml
if $rocm_tools; then
    step "ROCm's tools" "rocm-smi and rocminfo of AMD's image see the GPUs too."
    task verify-rocm-tools.yml
fi
if $dry_run; then
    printf '\nNothing was run.\n'
else
    printf '\nTasks on %s can use its AMD GPUs.\n' "$worker"
fi
