# uninstall UNDO_OPTION…
uninstall() {
    # A running install takes the lock before it creates its state.
    if [ -e "$state" ] || [ -e "$work" ]; then begin; fi
    if [ -e "$state" ]; then
        revert "$@"
    else
        fact nothing yes
    fi
    facts
}
