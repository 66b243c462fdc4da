#!/usr/bin/env bash
# Installs the exporter of AMD GPUs' metrics from rocworker's package, and checks that it answers. It needs no ROCm: the
# exporter reads the kernel's files. docs/monitoring.md describes it.
set -euo pipefail

unit=rocm-exporter
package=
yes=false

usage() {
    cat <<END
Usage: install-rocm-exporter.sh [--package FILE] [--yes]

Installs rocworker's exporter of AMD GPUs' metrics for Prometheus, and checks that it answers. It needs root, systemd
and an AMD card, and no ROCm. It changes the exporter's unit alone. rocworker undo reverts it.

  --package FILE   install this Debian package; needed unless rocworker is installed or apt knows it
  --yes            answer each question with yes
  -h, --help       print this

It ends with 0 when the exporter answers or you answered no, with 2 for wrong arguments, else with 1.
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

# ask QUESTION: goes on if the answer is yes.
ask() {
    local reply=yes
    printf '%s [y/N] ' "$1"
    if $yes; then
        echo y
    else
        read -r reply || fail "nobody answered: run this at a terminal, or with --yes"
    fi
    if ! [[ $reply =~ ^[Yy]([Ee][Ss])?$ ]]; then
        echo "Nothing was changed."
        exit 0
    fi
}

while (($#)); do
    case $1 in
    -h | --help) usage && exit 0 ;;
    --yes) yes=true ;;
    --package)
        package=${2-}
        [[ -f $package ]] || misuse "--package: there is no file '$package'"
        shift
        ;;
    *) misuse "there is no '$1'" ;;
    esac
    shift
done

echo "=== ROCm Exporter Installation ==="
[[ $(id -u) -eq 0 ]] || fail "This script must be run as root"
for tool in systemctl curl; do
    command -v "$tool" >/dev/null || fail "$tool is in no folder of PATH: install it"
done

present=$(systemctl cat "$unit.service" 2>/dev/null || true)
if [[ -n $present && $present != *'# Written by rocworker:'* ]]; then
    fail "$unit.service is not rocworker's: write 'exporter: {unit: true, existing: replace}' into \
/etc/rocworker/config.yaml to replace it until rocworker undo, then run this again"
fi
runs=false
if systemctl is-active --quiet "$unit"; then
    runs=true
    echo "ROCm exporter is already running"
    ask "Reinstall?"
fi

if [[ -n $package ]]; then
    # apt takes a word without a slash for the name of a package.
    apt-get install --yes "$(realpath "$package")" || fail "apt-get could not install $package"
elif ! command -v rocworker >/dev/null; then
    apt-get install --yes rocworker || fail "apt knows no package rocworker: name its file with --package (docs/install.md)"
fi

echo "rocworker apply --only exporter makes these changes:"
ended=0
rocworker plan --exit-code --only exporter || ended=$?
case $ended in
0) ;;
3) ask "Apply them?" ;;
*) fail "rocworker plan ended with $ended: correct what it names, then run this again" ;;
esac
rocworker apply --only exporter || echo "rocworker apply ended with $?: it says above what to correct"
# The package may have brought another build.
if $runs; then systemctl restart "$unit"; fi

listen=$(systemctl cat "$unit.service" 2>/dev/null | sed -n 's/^ExecStart=.* --listen \([^ ]*\).*/\1/p')
host=${listen%:*} port=${listen##*:}
if [[ $host == 0.0.0.0 || $host == '[::]' ]]; then host=localhost; fi
for ((second = 0; second < 10; second++)); do
    for url in "http://$host:$port/metrics" "https://$host:$port/metrics"; do
        code=$(curl --silent --insecure --max-time 5 --output /dev/null --write-out '%{http_code}' "$url" || true)
        # 401: an exporter that wants a password answers too.
        if [[ $code == 200 || $code == 401 ]] && systemctl is-active --quiet "$unit"; then
            echo
            echo "=== Installation Complete ==="
            echo "ROCm exporter running on port $port"
            echo "Metrics available at: $url"
            echo "Test with: curl $url"
            exit 0
        fi
    done
    sleep 1
done
echo "ERROR: Failed to start ROCm exporter" >&2
journalctl -u "$unit" --no-pager -n 20 >&2 || true
exit 1
