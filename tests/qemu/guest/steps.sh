
# What the steps of each machine are written with. What comes of a step is written to the second serial port, and the
# marks are read by tests/qemu/src/answers.rs.

step() {
    name=$1; shift
    "$@" </dev/null >/tmp/stdout 2>/tmp/stderr
    status=$?
    {
        echo "@@ begin $name"; cat /tmp/stdout; echo
        echo "@@ stderr"; cat /tmp/stderr; echo
        echo "@@ end $name $status"
    } >/dev/ttyS1
}

load() {
    for module in $(cat "/modules/$1"); do
        [ -d "/sys/module/$(echo "$module" | tr - _)" ] || insmod "/modules/$module.ko" || return
    done
}
