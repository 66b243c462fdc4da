# What each script of `rocworker remote` begins with. It answers on stdout in lines KEY TAB VALUE; all else goes to stderr.
set -eu
# A child must not read what is left of this script.
exec < /dev/null 3>&1 >&2
umask 022
PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
export PATH LC_ALL DEBIAN_FRONTEND
unit=rocm-exporter.service
config=/etc/rocworker/config.yaml
program=/usr/bin/rocworker
# How the machine was before the first install. It is whole or not there, and goes last.
state=/var/lib/rocworker-remote
work=$state.tmp

fact() {
    printf '%s\t%s\n' "$1" "$2" >&3
}

fail() {
    fact problem "$1"
    exit 1
}

# The last line that a command has written into $work/said.
said() {
    tail -n 1 "$work/said"
}

# `installed 0.1.0-1`, or `not-installed`; dpkg has further words for what was broken off.
package_status() {
    # shellcheck disable=SC2016
    dpkg-query --show --showformat='${db:Status-Status} ${Version}' rocworker 2> /dev/null || echo not-installed
}

unit_file() {
    systemctl show --property=FragmentPath --value "$unit"
}

is_own() {
    [ -n "$1" ] && [ -f "$1" ] && head -n 1 "$1" | grep -q '^# Written by rocworker:'
}

unit_facts() {
    file=$(unit_file)
    if is_own "$file"; then
        fact unit own
    elif [ -n "$file" ]; then
        fact unit foreign
        fact unit-file "$file"
        fact unit-runs "$(sed -n 's/^ExecStart=//p' "$file" | tail -n 1)"
    fi
    fact active "$(systemctl is-active "$unit" || true)"
}

# One at a time; the lock leaves no file. What a killed one has left in its folder goes.
begin() {
    exec 9< /var/lib
    flock --wait 60 9 || fail "another rocworker remote is at work there: wait until it has ended"
    rm -rf "$work"
    mkdir -m 700 "$work" 2> /dev/null || fail "cannot make the folder $work: the disk is full, or read-only"
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM PIPE
}
