# uninstall UNDO_OPTION…
uninstall() {
    if [ ! -e "$state" ]; then
        if [ -e "$work" ]; then begin; fi
        fact nothing yes
        return 0
    fi
    begin
    revert "$@"
    fact active "$(systemctl is-active "$unit" || true)"
}
