# uninstall UNDO_OPTION…
uninstall() {
    # An install that runs has the lock before its state is there.
    if [ -e "$state" ] || [ -e "$work" ]; then begin; fi
    if [ -e "$state" ]; then
        revert "$@"
    else
        fact nothing yes
    fi
    facts
}
