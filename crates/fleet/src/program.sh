# Runs rocworker on this machine: the installed one, or a copy of the program that asks. Before this stand `which`, `root`,
# `version`, `machine`, `colour` and `host`; behind it stands `main` with rocworker's arguments. Until rocworker begins, stdout
# has lines of a key, a tab and a value. stdin has what `digest` and `upload` ask for.
say() {
    printf '%s\t%s\n' "$1" "$2"
}

fail() {
    say problem "$1"
    exit 1
}

last() {
    printf '%s\n' "$1" | tail -n 1
}

# Whether a file or folder (f or d) of the current folder is this user's own with mode 0700. A link is neither.
is_own() {
    [ -n "$(find "./$2" -prune -type "$1" -user "$uid" -perm 700 2> /dev/null)" ]
}

# Finds the installed rocworker, and whether it has the version of the one that asks.
installed() {
    PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin
    program=$(command -v rocworker) || return 1
    if [ "$which" = same ] || [ -n "$colour" ]; then
        [ "$("$program" --version 2> /dev/null < /dev/null)" != "$version" ] || is_same=yes
    fi
    [ "$which" != same ] || [ -n "$is_same" ]
}

copied() {
    say digest
    read -r digest
    case ${XDG_CACHE_HOME:-} in
    /*) folder=$XDG_CACHE_HOME/rocworker ;;
    *) folder=$HOME/.cache/rocworker ;;
    esac
    name=rocworker-$digest is_same=yes
    [ -e "$folder/$name" ] || [ "$(uname -m)" = "$machine" ] ||
        fail "its processor is $(uname -m), and this rocworker is for $machine: install rocworker's package for it there"
    if ! entered; then
        umask 077
        # The parent's setgid bit or default ACL would give the folder another mode.
        [ -e "$folder" ] || why=$(mkdir -p "$folder" 2>&1 && chmod u=rwx,go=,g-s "$folder" 2>&1) ||
            fail "rocworker cannot make the folder $folder ($(last "$why")): $(elsewhere)"
        entered || fail "$folder is not a folder of $(id -un) alone (mode 0700, no link): $who"
    fi
    if [ ! -e "$name" ] && [ ! -L "$name" ]; then receive; fi
    is_own f "$name" || fail "$folder/$name is not a file of $(id -un) alone (mode 0700, no link): $who"
    [ "$(sha256sum < "$name")" = "$digest  -" ] ||
        fail "$folder/$name is not the program that rocworker copied there: find out who changed it, and remove it"
    # sudo may change the folder (sudoers(5), runcwd): this names the one that was checked while this shell lives.
    program=/proc/$$/cwd/$name
}

who="find out who made it, and remove it"

elsewhere() {
    printf "install rocworker's package there, or set XDG_CACHE_HOME for %s to another folder" "$(id -un)"
}

# Whether the folder is this user's own. From within it nobody can exchange it.
entered() {
    [ ! -L "$folder" ] && cd -P "$folder" 2> /dev/null && is_own d .
}

# Receives a line with a size, and as many bytes.
receive() {
    umask 077
    new=.$name.$$
    say upload "$folder"
    read -r size
    if ! why=$({ head -c "$size" | gzip -d > "$new"; } 2>&1 && chmod 700 "$new" 2>&1 && sync "$new" 2>&1 && mv "$new" "$name" 2>&1); then
        rm -f "$new"
        fail "rocworker cannot be copied to $folder ($(last "$why")): make room there, $(elsewhere)"
    fi
    # Copies of a day ago, which no login starts now, and parts that a broken connection left.
    eight='????????'
    digits=$eight$eight$eight$eight$eight$eight$eight$eight
    find . \( -name "rocworker-$digits" -o -name ".rocworker-$digits.*" \) ! -name "$name" -mtime +0 -exec rm -f {} +
}

main() {
    is_same=''
    # `id` is one process more (proc_pid_status(5)).
    while read -r key uid _; do [ "$key" != Uid: ] || break; done < /proc/self/status
    [ -n "$uid" ] || fail "it has no /proc: rocworker needs Linux, and /proc mounted"
    installed || {
        [ "$which" != installed ] ||
            fail "$1 needs rocworker on that machine: install its package there, or run \`rocworker remote install $host\`, which starts the exporter too"
        copied
    }
    if [ -n "$is_same" ] && [ -n "$colour" ]; then set -- --color always "$@"; fi
    if [ "$uid" = 0 ]; then
        say run
        exec "$program" "$@"
    fi
    if why=$(sudo -n -u root -- "$program" --version 2>&1 < /dev/null); then
        say run
        sudo -n -u root -- "$program" "$@"
        exit
    fi
    why=$(last "$why")
    [ -z "$root" ] || { say refused "$why"; exit 1; }
    say run "${why:-sudo refuses}"
    exec "$program" "$@"
}
