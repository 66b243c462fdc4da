# Before it: $options for `rocworker exporter configure`, $size and $sha256 of the package, and payload, which prints it.
install() {
    fresh=false
    begin
    # A killed uninstall may have purged folders: only the state still holds them.
    if [ -e "$state/how" ]; then revert; fi
    had=$(package_status)
    if [ "${had%% *}" = installed ]; then
        has_exporter || fail "rocworker ${had#* } there is too old: upgrade its package there first; the machine is unchanged"
    else
        unpack
    fi
    keep_state || fail "cannot save the machine's state in $state (is the disk full?); the machine is unchanged"
    if [ "${had%% *}" != installed ]; then
        # dpkg also fails if the trigger of another package fails.
        output=$("$dpkg" --install "$file" 2>&1) || [ "$(package_status | cut -d " " -f 1)" = installed ] ||
            give_up "dpkg cannot install the package: $(why)"
        printf '%s\n' "$output"
        has_exporter || give_up "rocworker $version_there is too old: name another package with --package"
    fi
    # Unquoted: each option is a word.
    # shellcheck disable=SC2086
    output=$("$program" exporter configure --keep "$state/config.after" $options 2>&1) || give_up "$(last)"
    : > "$state/applied"
    applied=0
    output=$("$program" apply --only exporter 2>&1) || applied=$?
    if [ "$applied" -eq 2 ]; then give_up "$(last)"; fi
    printf '%s\n' "$output"
    fact package "$(package_status)"
    verify
    if [ "$applied" -ne 0 ]; then
        fail "the exporter answers, but \`rocworker apply --only exporter\` failed: the lines above say why"
    fi
}

has_exporter() {
    "$program" exporter --help > /dev/null 2>&1
}

unpack() {
    file=$work/rocworker.deb
    room /var/lib $((size / 1024 + 8192)) "the package"
    payload > "$file" || fail "cannot write the package to $work (is the disk full?); the machine is unchanged"
    if [ "$(wc -c < "$file")" -ne "$size" ] || [ "$(sha256sum < "$file" | cut -c 1-64)" != "$sha256" ]; then
        fail "the package was damaged in transfer; the machine is unchanged"
    fi
    # shellcheck disable=SC2016
    output=$("$dpkg_deb" --show --showformat='${Package} ${Version} ${Architecture} ${Installed-Size}\n' "$file" 2>&1 \
        > "$work/control") || fail "dpkg-deb cannot read the package: $(last); the machine is unchanged"
    read -r name version_there architecture installed_size < "$work/control"
    if [ "$name" != rocworker ]; then
        fail "the package is $name, not rocworker: name another with --package; the machine is unchanged"
    fi
    if [ "$architecture" != all ] && [ "$architecture" != "$("$dpkg" --print-architecture)" ]; then
        fail "the package is for $architecture, and that machine is $("$dpkg" --print-architecture); the machine is unchanged"
    fi
    room /usr "$((installed_size + 4096))" "rocworker $version_there"
}

# room FOLDER KIB WHY
room() {
    free=$(df -Pk "$1" | awk 'END { print $4 }')
    if [ "$free" -lt "$2" ]; then
        fail "the disk is full: $3 needs $(($2 / 1024)) MiB in $1, and $((free / 1024)) MiB are free; the machine is unchanged"
    fi
}

keep_state() {
    if [ -e "$state" ]; then return 0; fi
    fresh=true
    mkdir -m 700 "$work/state" && printf '%s\n' "$had" > "$work/state/package" || return 1
    if [ -d /etc/rocworker ]; then cp -a /etc/rocworker "$work/state/etc" || return 1; fi
    if [ -d /var/lib/rocworker ]; then cp -a /var/lib/rocworker "$work/state/lib" || return 1; fi
    if is_own "$(unit_file)"; then : > "$work/state/own" || return 1; fi
    sync -f "$work"
    mv "$work/state" "$state" || return 1
    sync -f /var/lib
}

# Fails, after it has reverted what this run began.
give_up() {
    printf '%s\n' "$output"
    if $fresh; then
        # Where the disk is full, dpkg needs room to remove.
        rm -f "$work/rocworker.deb"
        revert
        fail "$1; the machine is unchanged"
    fi
    fail "$1"
}

verify() {
    if ! is_own "$(unit_file)"; then
        journal
        fail "rocm-exporter.service is not rocworker's: the lines above say why"
    fi
    if ! output=$("$program" exporter scrape --wait 10 2>&1); then
        journal
        fail "the exporter does not answer: $(last); fix this and install again, or run \`rocworker remote uninstall\`"
    fi
    fact scrape "$(last)"
    active=$(systemctl is-active "$unit" || true)
    fact active "$active"
    if [ "$active" != active ]; then
        journal
        fail "rocm-exporter.service is $active, but another program answers on its port"
    fi
}

journal() {
    journalctl --unit="$unit" --no-pager --lines=20 --output=short-iso || true
}
