# What each script of `rocworker remote` begins with. It answers on stdout in lines KEY TAB VALUE; all else goes to stderr.
set -eu
# A child must not read the rest of this script from stdin.
exec < /dev/null 3>&1 >&2
umask 022
PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
export PATH LC_ALL DEBIAN_FRONTEND
# Programs are called by their paths: busybox' sh has applets of these names, and prefers them.
dpkg=/usr/bin/dpkg dpkg_deb=/usr/bin/dpkg-deb
unit=rocm-exporter.service
config=/etc/rocworker/config.yaml
program=/usr/bin/rocworker
# How the machine was before the first install. It appears and disappears by one rename; uninstall removes it last.
state=/var/lib/rocworker-remote
work=$state.tmp
# The output of the last command. A variable holds it, because the disk may be full.
output=

fact() {
    printf '%s\t%s\n' "$1" "$2" >&3
}

fail() {
    fact problem "$1"
    exit 1
}

# The last line of $output, without rocworker's own name.
last() {
    printf '%s\n' "$output" | tail -n 1 | sed 's/^rocworker: //'
}

# dpkg's reason: its last line names only the archive or the package.
why() {
    reason=$(printf '%s\n' "$output" | sed -n '/^dpkg: .*error/{p;n;p;q;}' | tr -s '\n ' '  ')
    printf '%s\n' "${reason:-$(last)}"
}

# `installed 0.1.0-1`, or `not-installed`; dpkg has other states, of an interrupted installation.
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

# Also of a machine without dpkg or systemd.
facts() {
    fact package "$(package_status)"
    if [ -d /run/systemd/system ]; then unit_facts; fi
}

# Takes a lock that leaves no file, so that one run works at a time, and removes the folder of a killed run.
begin() {
    exec 9< /var/lib
    flock --wait 60 9 || fail "another \`rocworker remote\` is running on this machine: wait until it finishes"
    rm -rf "$work"
    mkdir -m 700 "$work" 2> /dev/null || fail "cannot make the folder $work: the disk is full, or read-only"
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM PIPE
}
