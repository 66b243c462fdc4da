#!/usr/bin/env bash
# Deploys a Concourse worker with AMD's GPUs by Juju, and has Concourse check that its tasks can use them.
# Each step says what it is for, shows its commands, and is checked before the next one begins.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly examples=$here/../charm/examples

dry_run=false
rocm_tools=false
model=
worker=concourse-worker
web=
worker_charm=concourse-ci-machine
channel=edge
charm=$here/../target/dist/charm/rocworker_ubuntu@24.04-amd64.charm
program=rocworker
target=rocworker-test
url=
team=main
minutes=20
number=0
units=()

usage() {
    cat <<END
Usage: deploy-test.sh --url URL [OPTION]...

Deploys a Concourse worker with AMD's GPUs by Juju, and has Concourse check that its tasks can use them. It needs juju
with a controller, fly, and a Concourse whose web is deployed. A second run changes only what is missing.

  --url URL            where Concourse's web answers
  --web NAME           the web's application: a worker that is not deployed yet is, and is related to it
  --worker NAME        the worker's application (default: $worker)
  --worker-charm NAME  the worker's charm (default: $worker_charm)
  --channel NAME       the channel of that charm (default: $channel)
  --charm FILE         rocworker's packed charm (default: what charmcraft pack makes for Ubuntu 24.04)
  --rocworker FILE     the program that says what to pass into a container of this host's LXD (default: $program)
  --rocm-tools         run rocm-smi and rocminfo in a task, too: their image has several GB
  --model NAME         the Juju model (default: the current one)
  --target NAME        fly's name for the Concourse (default: $target)
  --team NAME          Concourse's team (default: $team)
  --minutes N          how long a step may wait (default: $minutes)
  --dry-run            print the steps and their commands, and run none of them
  --help               print this

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

# show COMMAND...: as it could be typed.
show() {
    printf '   $'
    printf ' %q' "$@"
    printf '\n'
}

# run WHAT-TO-DO COMMAND...: runs a command, or only shows it.
run() {
    local remedy=$1
    shift
    show "$@"
    $dry_run || "$@" || fail "$1 ended with $?: $remedy"
}

# without_terminal: stdin without what a terminal adds to it, as a task's and that of juju ssh: colours, and \r at the end
# of a line.
without_terminal() {
    LC_ALL=C sed -e $'s/\x1b\\[[0-9;?]*[A-Za-z]//g' -e $'s/\r//g'
}

# shown: stdin, which a person sees on stderr meanwhile. tee /dev/stderr would empty a file that stderr goes to.
shown() {
    local line
    while IFS= read -r line || [[ -n $line ]]; do
        printf '%s\n' "$line" >&2
        printf '%s\n' "$line"
    done
}

# expect PATTERN WHAT-TO-DO COMMAND...: runs a command whose output, `said`, must have a line like that.
said=
expect() {
    local pattern=$1 remedy=$2
    shift 2
    show "$@"
    $dry_run && return
    said=$("$@" | shown | without_terminal) || fail "$1 ended with $?: $remedy"
    grep -qE -- "$pattern" <<<"$said" || fail "nothing in its output is like '$pattern': $remedy"
}

# juju_ SUBCOMMAND ARGUMENT...: the words of a juju command for the model, in the array `words`.
words=()
juju_() {
    read -ra words <<<"juju $1"
    [[ -z $model ]] || words+=(--model "$model")
    words+=("${@:2}")
}

# is_deployed APPLICATION: whether the model has it; nothing is known in a dry run.
is_deployed() {
    ! $dry_run || return
    juju_ show-application "$1"
    "${words[@]}" >/dev/null 2>&1
}

parse() {
    while (($#)); do
        case $1 in
        --help) usage && exit 0 ;;
        --dry-run) dry_run=true && shift && continue ;;
        --rocm-tools) rocm_tools=true && shift && continue ;;
        --url | --web | --worker | --worker-charm | --channel | --charm | --rocworker | --model | --target | --team | --minutes) ;;
        *) misuse "there is no '$1'" ;;
        esac
        if (($# < 2)) || [[ -z $2 || $2 == -* ]]; then misuse "$1 needs a value"; fi
        case $1 in
        --url) url=$2 ;;
        --web) web=$2 ;;
        --worker) worker=$2 ;;
        --worker-charm) worker_charm=$2 ;;
        --channel) channel=$2 ;;
        --charm) charm=$2 ;;
        --rocworker) program=$2 ;;
        --model) model=$2 ;;
        --target) target=$2 ;;
        --team) team=$2 ;;
        --minutes) minutes=$2 ;;
        *) misuse "there is no '$1'" ;;
        esac
        shift 2
    done
    # Without a folder juju takes it for the name of a charm in its store.
    [[ $charm == */* ]] || charm=./$charm
    local name='^[a-z][a-z0-9-]*$'
    [[ $worker =~ $name ]] || misuse "--worker has to be the name of an application"
    [[ -z $web || $web =~ $name ]] || misuse "--web has to be the name of an application"
    units=("$worker/0")
    [[ $url =~ ^https?://[^[:space:]]+$ ]] || misuse "--url has to be an http or https address"
    [[ $minutes =~ ^[1-9][0-9]{0,3}$ ]] || misuse "--minutes has to be a number from 1 to 9999"
}

tools() {
    step "What is needed" "juju and fly, and rocworker's charm."
    $dry_run && return
    local tool
    for tool in juju fly; do
        command -v "$tool" >/dev/null || fail "$tool is in no folder of PATH: install it"
    done
    [[ -f $charm ]] || fail "there is no $charm: pack the charm as docs/charm.md says, or name one with --charm"
}

# wait_for APPLICATION: until Juju calls it active.
wait_for() {
    juju_ 'wait-for application' "$1" --query 'status=="active"' --timeout "${minutes}m"
    run "juju status $1 says what is to be done" "${words[@]}"
}

concourse() {
    step "The worker" "Concourse's own charm, without its AMD mode: rocworker, which joins it, is told compute-runtime=rocm."
    if ! is_deployed "$worker"; then
        [[ -n $web ]] || $dry_run || fail "there is no application $worker: --web names the web that a new one joins"
        juju_ deploy "$worker_charm" "$worker" --channel "$channel" --config mode=worker
        run "juju debug-log tells why" "${words[@]}"
    fi
    if [[ -n $web ]]; then
        juju_ status "$worker" --relations
        expect '' "juju status $worker tells why" "${words[@]}"
        # The columns: provider, requirer.
        if ! grep -qE "(^|[[:space:]])$web:tsa[[:space:]]+$worker:flight([[:space:]]|$)" <<<"$said"; then
            juju_ integrate "$web:tsa" "$worker:flight"
            run "Juju before 3.0 calls it 'juju relate'" "${words[@]}"
        fi
    fi
    wait_for "$worker"
    juju_ status "$worker"
    expect "^$worker/[0-9]+" "is $worker the name of the worker's application? --worker names another" "${words[@]}"
    $dry_run || mapfile -t units < <(grep -oE "^$worker/[0-9]+" <<<"$said")
}

# pass CONTAINER: runs what rocworker advises for a container of this host, but for devices that it has.
pass() {
    local container=$1 line there
    local -a command
    expect '^lxc config device add ' "the lines with # say why no card can be passed" \
        "$program" lxd advise --client lxc --container "$container"
    if $dry_run; then
        printf '   and runs the commands that this prints\n'
        return
    fi
    there=$(lxc config device list "$container") || fail "lxc ended with $?: lxc list tells of $container"
    while read -r line; do
        [[ $line == 'lxc config device add '* ]] || continue
        read -ra command <<<"$line"
        if grep -qxF -- "${command[5]}" <<<"$there"; then
            printf '   %s has the device %s\n' "$container" "${command[5]}"
        else
            run "lxc config device show $container tells what it has" "${command[@]}"
        fi
    done <<<"$said"
}

devices() {
    step "The devices" "LXD passes AMD's cards and /dev/kfd into the worker's container: those alone, not every vendor's."
    local unit container
    for unit in "${units[@]}"; do
        juju_ ssh "$unit" hostname
        expect '^[A-Za-z0-9-]+[[:space:]]*$' "is $unit reached? juju status tells" "${words[@]}"
        container=CONTAINER
        $dry_run || container=$(grep -E '^[A-Za-z0-9-]+[[:space:]]*$' <<<"$said" | tail -n 1)
        if $dry_run || { command -v lxc >/dev/null && lxc info "$container" >/dev/null 2>&1; }; then
            pass "$container"
        else
            printf '   %s is no container of this host: its GPUs are its own, or another host passes them\n' "$container"
        fi
    done
}

deploy() {
    step "The charm" "A subordinate: it joins the worker's machine. A second run refreshes it, and relates it if need be."
    if is_deployed rocworker; then
        juju_ refresh rocworker --path "$charm"
        run "juju status rocworker tells why" "${words[@]}"
    else
        juju_ deploy "$charm" rocworker --config compute-runtime=rocm
        run "juju debug-log tells why" "${words[@]}"
    fi
    # A run that ended between the two has left the application without its relation.
    juju_ status rocworker --relations
    expect '' "juju status rocworker tells why" "${words[@]}"
    if ! grep -qE "(^|[[:space:]])$worker:juju-info[[:space:]]+rocworker:host([[:space:]]|$)" <<<"$said"; then
        juju_ integrate "rocworker:host" "$worker:juju-info"
        run "Juju before 3.0 calls it 'juju relate'" "${words[@]}"
    fi
}

gpus() {
    step "The GPUs" "The charm says how many it offers, or what is to be done."
    wait_for rocworker
    juju_ status rocworker
    expect '\(GPU: [1-9][0-9]*x AMD\)' "juju status rocworker says what is to be done" "${words[@]}"
}

login() {
    step "Concourse" "fly asks for a login only where it has none. The worker now has the tags of its GPUs."
    if $dry_run || ! fly --target "$target" status >/dev/null 2>&1; then
        run "is $url Concourse's web?" fly --target "$target" login --concourse-url "$url" --team-name "$team"
    fi
    expect 'compute-runtime=rocm' "the worker has no tag of a GPU yet: rocworker status on it tells of a restart" \
        fly --target "$target" workers
}

# task FILE LINE: has a worker with the tags run a task, whose output must have that line.
task() {
    expect "^✓ $2" "the lines with a cross say what is missing" \
        timeout "${minutes}m" fly --target "$target" execute --config "$examples/$1" --tag gpu --tag compute-runtime=rocm
}

check() {
    step "The task" "It runs on the worker, in an image without ROCm, and opens the devices that it was given."
    task verify-gpu-amd.yml 'AMD GPU devices are accessible in container'
    $rocm_tools || return 0
    step "ROCm's tools" "rocm-smi and rocminfo of AMD's image see the GPUs too."
    task verify-rocm-tools.yml 'ROCm can use [1-9]'
}

parse "$@"
tools
concourse
devices
deploy
gpus
login
check
if $dry_run; then
    printf '\nNothing was run.\n'
else
    printf '\nTasks on %s can use its AMD GPUs.\n' "$worker"
fi
