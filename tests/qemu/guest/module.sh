
# The machine of modules: follows steps.sh. busybox has tools of the same names, and takes its own for them.

prepare() {
    folder=/lib/modules/$(uname -r)/kernel
    mkdir -p "$folder" && cp /modules/*.ko "$folder/" && /sbin/depmod -a && cat "$folder/../modules.dep"
}

# reconcile STEP: the test's program, started again in here.
reconcile() {
    echo "$1" >/run/step
    /test/it --exact real_module::child --nocapture && cat /run/came
}

loaded() {
    cut -d ' ' -f 1 /proc/modules | sort
}

export PATH=/sbin:/bin
step depmod prepare
step before loaded
step nothing reconcile unheard-of
step fails reconcile fails
step failed loaded
step load reconcile load
step loaded loaded
step again reconcile load
step undo reconcile undo
step undone loaded
step repaired reconcile load
/sbin/rmmod vgem
step taken reconcile load
sleep 1000 <>/dev/dri/card0 &
step in-use reconcile undo
step kept loaded
kill $!
wait
/sbin/rmmod vgem drm_shmem_helper
step by-somebody /sbin/modprobe vgem
step found reconcile load
step left reconcile undo
step theirs loaded

echo "@@ done" >/dev/ttyS1
poweroff -f
