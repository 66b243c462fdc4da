#!/usr/bin/env bash
# Installs the exporter of AMD GPUs' metrics from rocworker's package, and checks that it answers. It needs no ROCm: the
# exporter reads the kernel's files. docs/monitoring.md describes it.
set -euo pipefail

unit=rocm-exporter
default_config=/etc/rocworker/config.yaml
config=$default_config
rocworker=(rocworker)
package=
yes=false
apply_all=false
seconds=10

usage() {
    cat <<END
Usage: install-rocm-exporter.sh [OPTION]...

Installs rocworker's exporter of AMD GPUs' metrics for Prometheus, and checks that it answers. It needs root, systemd
and an AMD card, and no ROCm. rocworker undo reverts it.

  --package FILE   install this Debian package; needed unless rocworker is installed or apt knows it
  --config FILE    rocworker's configuration, which must exist (default: $default_config, which need not)
  --yes            answer each question with yes
  --apply-all      apply the whole configuration, as of container engines, and not the exporter's unit alone
  -h, --help       print this

It ends with 0 when the exporter answers or you answered no, with 2 for wrong arguments, else with 1. A question that
gets no answer, as without a terminal, ends it with 1.
END
}

misuse() {
    printf 'install-rocm-exporter.sh: %s; see --help\n' "$1" >&2
    exit 2
}

fail() {
    printf 'ERROR: %s\n' "$1" >&2
    exit 1
}

# ask QUESTION AGREED: whether the answer is yes. AGREED: whether an option has given it already.
ask() {
    local reply=
    printf '%s [y/N] ' "$1"
    if $2; then
        echo y
        return 0
    fi
    if ! read -r reply && [[ -z $reply ]]; then
        echo
        fail "nobody answered: run this at a terminal, or see --yes and --apply-all in --help"
    fi
    echo
    [[ $reply =~ ^[Yy]([Ee][Ss])?$ ]]
}

declined() {
    echo "Nothing was ${1-changed}."
    exit 0
}

parse() {
    while (($#)); do
        case $1 in
        -h | --help) usage && exit 0 ;;
        --yes) yes=true && shift && continue ;;
        --apply-all) apply_all=true && shift && continue ;;
        --package=* | --config=*)
            set -- "${1%%=*}" "${1#*=}" "${@:2}"
            continue
            ;;
        --package | --config) ;;
        *) misuse "there is no '$1'" ;;
        esac
        if (($# < 2)) || [[ -z $2 || $2 == -* ]]; then misuse "$1 needs a value"; fi
        case $1 in
        --package) package=$2 ;;
        *) config=$2 ;;
        esac
        shift 2
    done
    # A mistyped name must not begin a configuration that rocworker reads nowhere.
    if [[ -f $config ]]; then
        [[ $config == "$default_config" ]] || rocworker+=(--config "$config")
    else
        [[ $config == "$default_config" ]] || misuse "--config: there is no file $config"
    fi
    [[ -z $package || -f $package ]] || misuse "--package: there is no file $package"
    # apt takes a word without a slash for the name of a package.
    [[ -z $package || $package == */* ]] || package=./$package
}

is_active() {
    systemctl is-active --quiet "$unit"
}

# unit_text: the unit as systemd has it; empty where there is none.
unit_text() {
    systemctl cat "$unit.service" 2>/dev/null || true
}

# exec_start: the command that the unit runs.
exec_start() {
    unit_text | sed -n 's/^ExecStart=//p' | tail -n 1
}

# existing: asks about an exporter that is there. `replaces`: another's unit is to give way; `restarts`: rocworker's ran.
replaces=false
restarts=false
existing() {
    local text
    text=$(unit_text)
    if is_active; then echo "ROCm exporter is already running"; fi
    if [[ -n $text ]] && ! grep -q '^# Written by rocworker:' <<<"$text"; then
        echo "$unit.service is not rocworker's. It runs: $(exec_start)"
        ask "Replace it until rocworker undo restores it?" "$yes" || declined
        replaces=true
    elif is_active; then
        ask "Reinstall?" "$yes" || declined
        restarts=true
    fi
}

install_package() {
    if [[ -n $package ]]; then
        echo "Installing $package..."
        apt-get install --yes "$package" || fail "apt-get could not install $package"
    elif ! command -v rocworker >/dev/null; then
        echo "Installing rocworker..."
        apt-get install --yes rocworker ||
            fail "apt knows no package rocworker: name its file with --package (docs/install.md)"
    fi
    command -v rocworker-exporter >/dev/null ||
        fail "this rocworker brings no rocworker-exporter: install a newer package with --package"
}

# configure: adds the key exporter where the configuration has none. What a person has written there is theirs to change.
configure() {
    local line='exporter: {unit: true, existing: replace}'
    $replaces || return 0
    if [[ -e $config ]] && grep -qE '^exporter[[:space:]]*:' "$config"; then
        grep -qE 'existing[[:space:]]*:[[:space:]]*replace' "$config" ||
            fail "$config has a key exporter: add 'existing: replace' to it, then run this again"
        return 0
    fi
    mkdir -p "$(dirname "$config")"
    # A last line without its end would take ours in.
    [[ ! -s $config || -z $(tail -c 1 "$config") ]] || echo >>"$config"
    printf '%s\n' "$line" >>"$config"
    echo "Added to $config: $line"
}

plans=
trap '[[ -z $plans ]] || rm -rf "$plans"' EXIT

# apply: the exporter's unit alone, or with --apply-all everything that the configuration wants: then what it applies is the
# plan that it showed, or nothing.
apply() {
    local ended=0 agreed=$yes what=(--only exporter)
    if $apply_all; then
        agreed=true
        plans=$(mktemp -d)
        "${rocworker[@]}" plan --save "$plans/plan.json" >/dev/null ||
            fail "rocworker plan ended with $?: correct what it names, then run this again"
        what=("$plans/plan.json")
        echo "rocworker apply makes these changes:"
        "${rocworker[@]}" plan --exit-code || ended=$?
    else
        echo "rocworker apply --only exporter makes these changes:"
        "${rocworker[@]}" plan --exit-code "${what[@]}" || ended=$?
    fi
    case $ended in
    0) ;;
    3) ask "Apply them?" "$agreed" || declined applied ;;
    *) fail "rocworker plan ended with $ended: correct what it names, then run this again" ;;
    esac
    "${rocworker[@]}" apply "${what[@]}" ||
        echo "rocworker apply ended with $?: it says above what to correct"
    # The package may have brought another build.
    if $restarts; then systemctl restart "$unit"; fi
}

# answers ADDRESS:PORT: whether the exporter serves metrics there. One that wants a password answers too.
answers() {
    local said
    if grep -q -- --web-config <<<"$(exec_start)"; then
        said=$(curl --silent --insecure --max-time 5 --output /dev/null --write-out '%{http_code}' "https://$1/metrics" ||
            curl --silent --max-time 5 --output /dev/null --write-out '%{http_code}' "http://$1/metrics") || return 1
        [[ $said == 200 || $said == 401 ]]
    else
        said=$(curl --silent --fail --max-time 5 "http://$1/metrics") || return 1
        grep -q '^rocm_' <<<"$said"
    fi
}

verify() {
    local listen host port n
    listen=$(exec_start | sed -n 's/.* --listen \([^ ]*\).*/\1/p')
    port=${listen##*:}
    host=${listen%:*}
    case $host in
    0.0.0.0 | '[::]') host=localhost ;;
    *) ;;
    esac
    for ((n = 0; n < seconds; n++)); do
        if is_active && [[ -n $port ]] && answers "$host:$port"; then
            complete "$host" "$port" "$listen"
            return 0
        fi
        sleep 1
    done
    echo "ERROR: Failed to start ROCm exporter" >&2
    journalctl -u "$unit" --no-pager -n 20 >&2 || true
    exit 1
}

# complete HOST PORT LISTEN
complete() {
    local scheme=http shown=$1
    if grep -q -- --web-config <<<"$(exec_start)"; then scheme=https; fi
    if [[ $1 == localhost ]]; then shown=$(hostname); fi
    echo
    echo "=== Installation Complete ==="
    echo "ROCm exporter running on port $2"
    echo "Metrics available at: $scheme://$shown:$2/metrics"
    echo "Test with: curl $scheme://$1:$2/metrics"
    if [[ $3 == 127.* || $3 == '[::1]'* ]]; then
        echo "Only this machine can reach it: 'exporter: {listen: 0.0.0.0:$2}' in $config, then rocworker apply, opens it"
    fi
}

parse "$@"
echo "=== ROCm Exporter Installation ==="
[[ $(id -u) -eq 0 ]] || fail "This script must be run as root"
command -v systemctl >/dev/null || fail "systemctl is in no folder of PATH: the exporter is a unit of systemd"
command -v curl >/dev/null || fail "curl is in no folder of PATH: install it"
echo "No ROCm is needed: the exporter reads the kernel's files."
existing
install_package
configure
apply
verify
