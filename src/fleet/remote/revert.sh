# revert UNDO_OPTION…: what install has brought goes, in the reverse order. Each step may come twice.
revert() {
    if [ -x "$program" ] && ! "$program" undo --only exporter "$@" 2> "$work/said"; then
        cat "$work/said"
        fail "the exporter's unit was not reverted: $(said)"
    fi
    systemctl reset-failed "$unit" 2> /dev/null || true
    revert_config
    if [ -e "$state/own" ] && [ -x "$program" ]; then
        "$program" apply --only exporter || fail "the exporter's unit as it was before does not run"
    fi
    read -r before < "$state/package"
    case $before in
    installed*) fact stays "rocworker ${before#installed } was there before, and stays" ;;
    *) revert_package ;;
    esac
    # Whatever ends this now, the state is whole or not there.
    mv "$state" "$work/done"
}

revert_config() {
    old=$state/etc/config.yaml
    if [ ! -e "$state/config.after" ]; then return 0; fi
    if [ ! -e "$config" ] || { [ -e "$old" ] && cmp -s "$config" "$old"; }; then return 0; fi
    if cmp -s "$config" "$state/config.after"; then
        if [ -e "$old" ]; then
            cp -a "$old" "$config.new"
            mv "$config.new" "$config"
        else
            rm "$config"
        fi
        return 0
    fi
    # It has changed since: only the line that install has added goes.
    tail -n 1 "$state/config.after" > "$work/line"
    if [ "$(grep -cxFf "$work/line" "$config")" = 1 ]; then
        cp -a "$config" "$config.new"
        grep -vxFf "$work/line" "$config" > "$config.new" || true
        mv "$config.new" "$config"
        fact kept "$config has changed since the installation: only the key exporter was removed"
    else
        fact kept "$config has changed since the installation, and its key exporter too: it stays as it is"
    fi
}

# Whether a folder holds what it held before.
is_as_before() {
    if [ -d "$state/$1" ]; then
        [ -d "$2" ] && diff -r "$state/$1" "$2" > /dev/null 2>&1
    else
        [ ! -d "$2" ] || [ -z "$(ls -A "$2")" ]
    fi
}

revert_package() {
    now=$(package_status)
    if [ -e /var/lib/rocworker/receipt.json ]; then
        fact kept "rocworker manages more there by now: its package stays"
        return 0
    fi
    case $now in
    not-installed*) ;;
    *)
        how=--purge
        if [ "${before%% *}" = config-files ]; then
            how=--remove
        elif [ "${now%% *}" = config-files ] && ! is_as_before etc /etc/rocworker; then
            how=
        elif ! is_as_before etc /etc/rocworker; then
            how=--remove
            fact kept "/etc/rocworker has changed since the installation: it stays, until dpkg --purge rocworker"
        fi
        if [ -n "$how" ]; then
            dpkg --force-remove-reinstreq "$how" rocworker 2> "$work/said" || {
                cat "$work/said"
                fail "dpkg cannot remove rocworker: $(said)"
            }
        fi
        ;;
    esac
    revert_folder etc /etc/rocworker
    revert_folder lib /var/lib/rocworker
}

# A purge removes these folders, whoever made them.
revert_folder() {
    if [ -d "$state/$1" ] && [ ! -e "$2" ]; then
        rm -rf "$2.new"
        cp -a "$state/$1" "$2.new"
        mv "$2.new" "$2"
    elif [ ! -d "$state/$1" ] && [ -d "$2" ]; then
        rmdir "$2" 2> /dev/null || true
    fi
}
