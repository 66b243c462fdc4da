fact machine "$(uname -m)"
if [ ! -x "$dpkg" ]; then fail "there is no dpkg: rocworker's package is for Debian and Ubuntu"; fi
if [ ! -d /run/systemd/system ] || ! command -v systemctl > /dev/null; then
    fail "systemd does not run there: the exporter is a unit of systemd"
fi
fact architecture "$("$dpkg" --print-architecture)"
cards=0
for vendor in /sys/bus/pci/devices/*/vendor; do
    [ -e "$vendor" ] || continue
    if [ "$(cat "$vendor")" = 0x1002 ]; then
        case $(cat "${vendor%vendor}class") in 0x03* | 0x12*) cards=$((cards + 1)) ;; *) ;; esac
    fi
done
fact cards "$cards"
package=$(package_status)
fact package "$package"
if [ ! -e "$state" ] && [ "${package%% *}" != installed ] && [ -e /var/lib/rocworker/receipt.json ]; then
    fail "another rocworker than the package manages this machine: run rocworker undo there, or install the package"
fi
unit_facts
