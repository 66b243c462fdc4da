if [ ! -x "$dpkg" ]; then fail "dpkg is missing: rocworker's package needs Debian or Ubuntu"; fi
if [ ! -d /run/systemd/system ] || ! command -v systemctl > /dev/null; then
    fail "systemd is not running: the exporter runs as a systemd unit"
fi
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
    fail "a rocworker that dpkg did not install manages this machine: run its \`rocworker undo\`, or install the package"
fi
unit_facts
