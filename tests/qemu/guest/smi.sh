
# The machine of AMD's tools: follows steps.sh. Their root file system is a folder here, with the kernel's own /sys.

smi() {
    chroot /smi /usr/bin/python3 -B "$@"
}

prepare() {
    for folder in sys proc dev tmp; do mkdir -p "/smi/$folder" && mount --rbind "/$folder" "/smi/$folder" || return; done
    mkdir -p /smi/run /smi/var/log /dev/shm
}

ROCM_SMI=/usr/libexec/rocm_smi/rocm_smi.py
AMD_SMI=/usr/libexec/amdsmi_cli/amdsmi_cli.py

step release uname -r
step prepare prepare
step rocm-smi-without-driver smi $ROCM_SMI --showdriverversion --json
step metrics-without-driver rocworker metrics
step amdgpu load amdgpu
step detect rocworker detect --output json
step rocm-smi smi $ROCM_SMI --showdriverversion --showtemp --showuse --showpower --showmeminfo vram --json
step amd-smi smi $AMD_SMI metric --json
step metrics rocworker metrics

echo "@@ done" >/dev/ttyS1
poweroff -f
