# Reverts install, last step first. Each step can run again.
# revert UNDO_OPTION…
revert() {
    revert_unit "$@"
    read -r before < "$state/package"
    case $before in installed*) how=stays ;; *) revert_package ;; esac
    revert_folders
    mv "$state" "$work/done"
}

# Before apply, install has changed no unit.
revert_unit() {
    if [ -e "$state/own" ]; then
        revert_config
        if [ -e "$state/applied" ] && [ -x "$program" ]; then
            "$program" apply --only exporter || fail "rocworker cannot restore the previous exporter unit"
        fi
        return 0
    fi
    if [ -e "$state/applied" ] && [ -x "$program" ]; then
        output=$("$program" undo --only exporter "$@" 2>&1) || {
            printf '%s\n' "$output"
            fail "the exporter's unit was not reverted: the lines above say why; after an edit, use \`rocworker remote uninstall --force\`"
        }
        systemctl reset-failed "$unit" 2> /dev/null || true
    fi
    revert_config
}

revert_config() {
    old=$state/etc/config.yaml
    if [ ! -e "$state/config.after" ]; then return 0; fi
    if [ ! -e "$config" ] || { [ -e "$old" ] && cmp -s "$config" "$old"; }; then return 0; fi
    if cmp -s "$config" "$state/config.after"; then
        if [ -e "$old" ]; then
            cp -a "$old" "$config.new" || config_stays
            mv "$config.new" "$config"
        else
            rm "$config"
        fi
        return 0
    fi
    # Somebody edited it since: remove only the line that install added.
    tail -n 1 "$state/config.after" > "$work/line" || config_stays
    if [ "$(grep -cxFf "$work/line" "$config")" = 1 ]; then
        cp -a "$config" "$config.new" || config_stays
        # 1: no line is left, which is no failure.
        grep -vxFf "$work/line" "$config" > "$config.new" || [ $? -eq 1 ] || config_stays
        mv "$config.new" "$config"
        fact kept "$config changed after the installation: only the key exporter was removed"
    else
        fact kept "$config and its key exporter changed after the installation: the file stays as it is"
    fi
}

config_stays() {
    rm -f "$config.new"
    fail "$config cannot be restored, and stays as it is: is the disk full? Make room, then uninstall again"
}

# Whether a folder holds what it held before.
is_as_before() {
    if [ -d "$state/$1" ]; then
        [ -d "$2" ] && diff -r "$state/$1" "$2" > /dev/null 2>&1
    else
        [ ! -d "$2" ] || [ -z "$(ls -A "$2")" ]
    fi
}

# After a killed dpkg the folders say nothing: keep the decision that an earlier run made.
decide() {
    if [ -e "$state/how" ] && [ "${now%% *}" != installed ]; then
        read -r how < "$state/how"
        return 0
    fi
    how=--purge
    if [ -e /var/lib/rocworker/receipt.json ]; then
        how=stays
    elif [ "${before%% *}" = config-files ] || ! is_as_before etc /etc/rocworker; then
        how=--remove
    fi
    printf '%s\n' "$how" > "$work/how" || fail "the disk is full: make room, then run \`rocworker remote uninstall\`"
    mv "$work/how" "$state/how"
}

revert_package() {
    now=$(package_status)
    decide
    if [ "$how" = stays ]; then
        fact kept "rocworker manages other components now, so its package stays"
        return 0
    fi
    case $now in
    not-installed*) ;;
    *)
        output=$("$dpkg" --force-remove-reinstreq "$how" rocworker 2>&1) || {
            printf '%s\n' "$output"
            fail "dpkg cannot remove rocworker: $(why)"
        }
        ;;
    esac
    if [ "$how" = --remove ] && [ "${before%% *}" != config-files ]; then
        fact kept "/etc/rocworker changed after the installation and stays; \`dpkg --purge rocworker\` removes it"
    fi
}

# A purge removes both folders, whoever made them. Without a receipt rocworker manages nothing, and /var/lib/rocworker
# holds only traces of this installation.
revert_folders() {
    if [ "$how" = --purge ]; then
        restore etc /etc/rocworker
    elif [ ! -d "$state/etc" ] && [ -d /etc/rocworker ]; then
        rmdir /etc/rocworker 2> /dev/null || true
    fi
    if [ ! -e /var/lib/rocworker/receipt.json ] && [ ! -e "$state/lib/receipt.json" ]; then
        restore lib /var/lib/rocworker
    fi
}

restore() {
    rm -rf "$2.new"
    if [ -d "$state/$1" ]; then
        cp -a "$state/$1" "$2.new"
        rm -rf "$2"
        mv "$2.new" "$2"
    else
        rm -rf "$2"
    fi
}
