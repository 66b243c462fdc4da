# Before it: $options for `rocworker exporter configure`, $size and $sha256 of the package, and payload, which prints it.
keep_state() {
    if [ -e "$state" ]; then return 0; fi
    fresh=true
    mkdir -m 700 "$work/state" && printf '%s\n' "$had" > "$work/state/package" || return 1
    if [ -d /etc/rocworker ]; then cp -a /etc/rocworker "$work/state/etc" || return 1; fi
    if [ -d /var/lib/rocworker ]; then cp -a /var/lib/rocworker "$work/state/lib" || return 1; fi
    if is_own "$(unit_file)"; then : > "$work/state/own" || return 1; fi
    sync
    mv "$work/state" "$state" || return 1
    sync
}

# Why nothing came of it; what this run has begun goes again.
give_up() {
    if [ -e "$work/said" ]; then cat "$work/said"; fi
    if $fresh; then
        revert
        fail "$1; nothing was changed there"
    fi
    fail "$1"
}

# room FOLDER KIB WHY
room() {
    free=$(df -Pk "$1" | awk 'END { print $4 }')
    if [ "$free" -lt "$2" ]; then
        fail "the disk is full there: $3 needs $(($2 / 1024)) MiB in $1, and $((free / 1024)) MiB are free; nothing was changed there"
    fi
}

unpack() {
    file=$work/rocworker.deb
    room /var/lib $((size / 1024 + 8192)) "the package"
    payload > "$file" || fail "the package cannot be written into $work: is the disk full? Nothing was changed there"
    if [ "$(wc -c < "$file")" -ne "$size" ] || [ "$(sha256sum < "$file" | cut -c 1-64)" != "$sha256" ]; then
        fail "the package arrived there damaged; nothing was changed there"
    fi
    # shellcheck disable=SC2016
    dpkg-deb --show --showformat='${Package} ${Version} ${Architecture} ${Installed-Size}\n' "$file" \
        > "$work/control" 2> "$work/said" || fail "what was copied is no Debian package: $(said); nothing was changed there"
    read -r name version_there architecture installed_size < "$work/control"
    if [ "$name" != rocworker ]; then
        fail "the package is $name, not rocworker: name another with --package; nothing was changed there"
    fi
    if [ "$architecture" != all ] && [ "$architecture" != "$(dpkg --print-architecture)" ]; then
        fail "the package is for $architecture, and that machine is $(dpkg --print-architecture): nothing was changed there"
    fi
    room /usr "$((installed_size + 4096))" "rocworker $version_there"
}

install() {
    fresh=false
    begin
    had=$(package_status)
    if [ "${had%% *}" != installed ]; then unpack; fi
    keep_state || fail "how the machine is cannot be kept in $state: is the disk full? Nothing was changed there"
    if [ "${had%% *}" != installed ]; then
        # It also fails where the trigger of another package does.
        dpkg --install "$file" 2> "$work/said" || [ "$(package_status | cut -d " " -f 1)" = installed ] ||
            give_up "dpkg cannot install the package: $(said)"
        cat "$work/said"
        rm -f "$work/said"
    fi
    if ! "$program" exporter --help > /dev/null 2>&1; then
        give_up "rocworker ${had#* } there is too old: upgrade its package there first"
    fi
    # Without quotes: options, each a word.
    # shellcheck disable=SC2086
    "$program" exporter configure --keep "$state/config.after" $options 2> "$work/said" || give_up "$(said)"
    rm -f "$work/said"
    applied=0
    "$program" apply --only exporter 2> "$work/said" || applied=$?
    cat "$work/said"
    if [ "$applied" -eq 2 ]; then give_up "$(said)"; fi
    fact package "$(package_status)"
    verify
}

verify() {
    if ! is_own "$(unit_file)"; then
        journal
        fail "rocm-exporter.service is not rocworker's: the lines above say why"
    fi
    if ! "$program" exporter scrape --wait 10 > "$work/scrape" 2> "$work/said"; then
        journal
        fail "the exporter does not answer there: $(said); correct it and install again, or rocworker remote uninstall"
    fi
    fact scrape "$(cat "$work/scrape")"
    active=$(systemctl is-active "$unit" || true)
    fact active "$active"
    if [ "$active" != active ]; then
        journal
        fail "rocm-exporter.service is $active, and something else answers on its port"
    fi
}

journal() {
    journalctl --unit="$unit" --no-pager --lines=20 --output=short-iso || true
}
