#!/usr/bin/env bash
# Sets rocworker up on a Concourse worker that Juju runs, and has Concourse check that tasks can use AMD's GPUs.
# Each step says what it is for, shows its commands, and is checked before the next one begins.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here

dry_run=false
model=
worker=concourse-worker
charm=$here/../charm/rocworker.charm
program=
target=rocworker-test
url=
team=main
minutes=20
number=0
units=()

usage() {
    cat <<END
Usage: deploy-test.sh --program FILE --url URL [OPTION]...

Sets rocworker up on a Concourse worker that Juju runs, and has Concourse check that tasks can use AMD's GPUs.
It needs juju with a controller, fly, readelf (binutils), and a Concourse whose worker is an application of the model.

  --program FILE   the static rocworker that tasks run as /srv/rocworker/rocworker: of what \`cargo xtask dist\` makes,
                   rocworker-VERSION-x86_64-linux-static
  --url URL        where Concourse's web answers
  --charm FILE     the packed charm (default: charm/rocworker.charm)
  --model NAME     the Juju model (default: the current one)
  --worker NAME    the worker's application (default: $worker)
  --target NAME    fly's name for the Concourse (default: $target)
  --team NAME      Concourse's team (default: $team)
  --minutes N      how long a step may wait (default: $minutes)
  --dry-run        print the steps and their commands, and run none of them
  --help           print this

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

# expect PATTERN WHAT-TO-DO COMMAND...: runs a command whose output, `said`, must have a line like that.
said=
expect() {
    local pattern=$1 remedy=$2
    shift 2
    show "$@"
    $dry_run && return
    said=$("$@" | tee /dev/stderr | without_terminal) || fail "$1 ended with $?: $remedy"
    grep -qE -- "$pattern" <<<"$said" || fail "nothing in its output is like '$pattern': $remedy"
}

# juju_ SUBCOMMAND ARGUMENT...: the words of a juju command for the model, in the array `words`.
words=()
juju_() {
    read -ra words <<<"juju $1"
    [[ -z $model ]] || words+=(--model "$model")
    words+=("${@:2}")
}

parse() {
    while (($#)); do
        case $1 in
        --help) usage && exit 0 ;;
        --dry-run) dry_run=true && shift && continue ;;
        --program | --url | --charm | --model | --worker | --target | --team | --minutes) ;;
        *) misuse "there is no '$1'" ;;
        esac
        if (($# < 2)) || [[ -z $2 || $2 == -* ]]; then misuse "$1 needs a value"; fi
        case $1 in
        --program) program=$2 ;;
        --url) url=$2 ;;
        --charm) charm=$2 ;;
        --model) model=$2 ;;
        --worker) worker=$2 ;;
        --target) target=$2 ;;
        --team) team=$2 ;;
        --minutes) minutes=$2 ;;
        *) misuse "there is no '$1'" ;;
        esac
        shift 2
    done
    # Without a folder juju takes it for the name of a charm in its store.
    [[ $charm == */* ]] || charm=./$charm
    [[ -n $program ]] || misuse "--program is missing"
    [[ $worker =~ ^[a-z][a-z0-9-]*$ ]] || misuse "--worker has to be the name of an application"
    units=("$worker/0")
    [[ $url =~ ^https?://[^[:space:]]+$ ]] || misuse "--url has to be an http or https address"
    [[ $minutes =~ ^[1-9][0-9]{0,3}$ ]] || misuse "--minutes has to be a number from 1 to 9999"
}

tools() {
    step "What is needed" "juju and fly, the charm, and a program that runs in an image without libraries."
    $dry_run && return
    local tool
    for tool in juju fly; do
        command -v "$tool" >/dev/null || fail "$tool is in no folder of PATH: install it"
    done
    command -v readelf >/dev/null || fail "readelf is in no folder of PATH: install binutils"
    [[ -f $charm ]] || fail "there is no $charm: pack the charm, or name one with --charm"
    [[ -x $program ]] || fail "there is no program $program that can be run: \`cargo xtask dist\` makes one"
    local headers
    headers=$(readelf --program-headers --wide "$program" 2>/dev/null) ||
        fail "$program is no program of Linux (readelf cannot read it): \`cargo xtask dist\` makes one"
    # A program with an interpreter looks for it in the task's image.
    if [[ $headers == *INTERP* ]]; then
        fail "$program is linked dynamically, and would not start in most images"
    fi
}

concourse() {
    step "The worker" "rocworker joins a worker that is there; the Concourse charm's own documentation deploys one."
    juju_ status "$worker"
    expect "^$worker/[0-9]+" "is $worker the name of the worker's application? --worker names another" "${words[@]}"
    $dry_run || mapfile -t units < <(grep -oE "^$worker/[0-9]+" <<<"$said")
}

place_program() {
    step "The check" "Every folder of the worker's /srv is in each of its containers: tasks find the program there."
    local unit folder
    for unit in "${units[@]}"; do
        # What root installs is in every container: it comes through a folder that nobody else can write to.
        juju_ ssh "$unit" mktemp -d
        expect '^/[A-Za-z0-9._/-]+[[:space:]]*$' "is $unit reached? juju status tells" "${words[@]}"
        folder=FOLDER
        $dry_run || folder=$(grep -oE '^/[A-Za-z0-9._/-]+' <<<"$said" | tail -n 1)
        juju_ scp "$program" "$unit:$folder/rocworker"
        run "is $unit reached? juju status tells" "${words[@]}"
        juju_ ssh "$unit" sudo install -D -m 0755 "$folder/rocworker" /srv/rocworker/rocworker
        run "is $unit reached? juju status tells" "${words[@]}"
        juju_ ssh "$unit" rm -r "$folder"
        run "is $unit reached? juju status tells" "${words[@]}"
    done
}

deploy() {
    step "The charm" "A subordinate: it joins the worker's machine. A second run refreshes it, and relates it if need be."
    local is_there=false
    if ! $dry_run; then
        juju_ show-application rocworker
        "${words[@]}" >/dev/null 2>&1 && is_there=true
    fi
    if $is_there; then
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

wait_for_gpus() {
    step "The GPUs" "The charm says how many it offers, or what is to be done: in LXD the commands for the host."
    juju_ 'wait-for application' rocworker --query 'status=="active"' --timeout "${minutes}m"
    run "juju status rocworker says what is to be done" "${words[@]}"
    juju_ status rocworker
    expect '\(GPU: [1-9][0-9]*x AMD\)' "juju status rocworker says what is to be done" "${words[@]}"
}

login() {
    step "Concourse" "fly asks for a login only where it has none."
    if $dry_run || ! fly --target "$target" status >/dev/null 2>&1; then
        run "is $url Concourse's web?" fly --target "$target" login --concourse-url "$url" --team-name "$team"
    fi
    expect 'compute-runtime=rocm' "the worker has no tag of a GPU yet: rocworker status on it tells of a restart" \
        fly --target "$target" workers
}

pipeline() {
    local file=$here/../charm/examples/gpu-check.yml
    step "The pipeline" "fly holds it against Concourse's own rules before it is set."
    run "correct what fly names" fly --target "$target" validate-pipeline --config "$file"
    run "fly says why" fly --target "$target" set-pipeline --non-interactive --pipeline gpu-check --config "$file"
    run "fly says why" fly --target "$target" unpause-pipeline --pipeline gpu-check
}

check() {
    step "The task" "It runs on the worker, in an image without ROCm, and tries the devices that it was given."
    expect '^✓ AMD GPU devices are accessible in container' "the lines with a cross say what is missing" \
        timeout "${minutes}m" fly --target "$target" trigger-job --job gpu-check/gpu-check --watch
}

parse "$@"
tools
concourse
place_program
deploy
wait_for_gpus
login
pipeline
check
if $dry_run; then
    printf '\nNothing was run.\n'
else
    printf '\nTasks on %s can use its AMD GPUs.\n' "$worker"
fi
