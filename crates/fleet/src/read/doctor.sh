# What `doctor` reads besides the GPUs: rocworker's own files, the driver's, and the engines'.
doctor() {
  meta / /etc /run /usr /usr/lib /usr/local /usr/local/lib /var /var/lib /lib
  meta /run/rocworker /var/lib/rocworker /usr/lib/rocworker
  owned /var/lib/rocworker/receipt.json /var/lib/rocworker/memory.json /var/lib/rocworker/history.json
  # These folders have keys and passwords: no more is read than doctor needs.
  folder /etc/rocworker
  owned /etc/rocworker/config.yaml /etc/rocworker/wrapper.json /etc/rocworker/concourse.env \
    /etc/rocworker/concourse-containerd.toml
  configs /etc/rocworker/templates
  configs /usr/lib/rocworker/templates
  programs
  driver
  engines
  units
}

# The wrapper is the only program that doctor reads: whether it is whole. A folder's names tell
# of those that are not there.
programs() {
  owned /usr/lib/rocworker/runc-amd-wrapper /usr/local/lib/rocworker/runc-amd-wrapper
  meta /usr/local/lib/rocworker /usr/local/lib/rocworker/concourse-containerd /usr/local/lib/rocworker/shim \
    /usr/local/lib/rocworker/shim/runc
  for at in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
    meta $at
    folder $at
    for name in containerd dockerd crio podman concourse rocm-smi amd-smi rocminfo modinfo dkms mokutil \
      runc youki runsc krun ocijail amd-container-runtime; do
      ! there $at/$name || meta $at/$name
    done
    # The runtimes of crates/engines/src/wrapper_as_default.rs that come under several names.
    for path in "$R$at"/kata* "$R$at"/nvidia* "$R$at"/sysbox* "$R$at"/crun* "$R$at"/containerd-shim*; do
      ! there "$at/${path##*/}" || meta "$at/${path##*/}"
    done
  done
  meta /snap/docker/current
  workers
}

# A Concourse worker's own programs, and the scripts that its charm puts in runc's place (crates/engines/src/concourse).
workers() {
  for at in /var/lib/concourse/bin /usr/local/concourse/bin; do
    meta $at $at/concourse $at/containerd $at/runc $at/runc.real
  done
  meta /opt/bin /opt/bin/runc
  owned /opt/bin/runc-amd-wrapper /opt/bin/runc-wrapper
}

driver() {
  owned /etc/group /usr/lib/group /etc/nsswitch.conf /etc/passwd /etc/subgid /etc/subuid /etc/hostname /etc/os-release \
    /usr/lib/os-release
  meta /var/lib/kubelet
  file /proc/config.gz /sys/fs/selinux/enforce /sys/fs/selinux/booleans/container_use_devices \
    /proc/sys/kernel/hostname /proc/version /proc/cmdline /proc/modules \
    /proc/self/uid_map /proc/self/gid_map /proc/self/mountinfo /sys/module/module/parameters/sig_enforce \
    /sys/kernel/security/lockdown /opt/rocm/.info/version \
    /sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c \
    /sys/firmware/efi/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23 \
    /sys/firmware/efi/mok-variables/MokListRT
  owned /var/lib/dpkg/status /var/lib/dpkg/arch /var/lib/dkms/mok.pub /var/lib/shim-signed/mok/MOK.der \
    /etc/dkms/framework.conf
  configs /etc/dkms/framework.conf.d
  folder /var/lib/dpkg/updates
  for at in /etc/modprobe.d /run/modprobe.d /usr/local/lib/modprobe.d /usr/lib/modprobe.d /lib/modprobe.d; do
    configs $at '*.conf'
  done
  configs /etc/modules-load.d '*.conf'
  owned /etc/apt/sources.list
  configs /etc/apt/sources.list.d
  release=
  meta /lib/modules
  if [ -f "$R/proc/sys/kernel/osrelease" ]; then read -r release <"$R/proc/sys/kernel/osrelease" || :; fi
  case $release in
    '' | .* | */*) ;;
    *)
      modules=/lib/modules/$release
      meta "$modules" "$modules/build" "$modules/build/include"
      file "$modules/modules.dep"
      modules "$modules/updates"
      modules "$modules/updates/dkms"
      modules "$modules/extra" ;;
  esac
  folder /var/lib/dkms/amdgpu
  for path in "$R"/var/lib/dkms/amdgpu/*; do
    version=/var/lib/dkms/amdgpu/${path##*/}
    [ -d "$path" ] || { [ ! -L "$path" ] || meta "$version"; continue; }
    folder "$version"
    for kernel in "$path"/*; do [ ! -d "$kernel" ] || folder "$version/${kernel##*/}"; done
  done
}

# Modules on disk are looked at, not read.
modules() {
  folder "$1"
  for path in "$R$1"/*; do ! there "$1/${path##*/}" || meta "$1/${path##*/}"; done
}

engines() {
  configs /etc/cdi '*.[jy]*'
  configs /run/cdi '*.[jy]*'
  meta /var/run /var/run/cdi
  configs /etc/containerd '*.toml'
  configs /etc/containerd/conf.d '*.toml'
  folder /etc/docker
  owned /etc/crio/crio.conf /etc/containers/containers.conf /usr/share/containers/containers.conf
  configs /etc/crio/crio.conf.d
  configs /etc/containers/containers.conf.d
  configs /usr/share/containers/containers.conf.d
  folder /etc/default
  folder /etc/concourse
  owned /etc/docker/daemon.json /etc/default/docker /etc/default/concourse /var/lib/concourse/containerd-gpu.toml \
    /var/lib/concourse-worker/worker-config.env /var/lib/concourse-worker/work_dir/containerd.toml
  configs /var/lib/concourse '*.toml'
  owned /var/run/docker.pid /run/docker.pid
  meta /run/containerd /run/docker.sock /run/containerd/containerd.sock /var/lib/containerd /var/lib/docker
}
