# PCI, DRM, KFD, the module and /dev, as crates/amdgpu reads them. A card's state of power comes first: of one that is
# suspended nothing of amdgpu's is read, which would wake it.
bus=/sys/bus/pci/devices
drm=/sys/class/drm
kfd=/sys/class/kfd/kfd
awake= sleeping=

machine() {
  folder $bus
  for path in "$R$bus"/*; do
    address=${path##*/}
    class=
    [ ! -f "$path/class" ] || read -r class <"$path/class" || :
    file "$bus/$address/uevent"
    case $class in '' | 0x03* | 0x1200*) display "$address" ;; esac
    some
  done 2>/dev/null
  minors
  topology
  folder /sys/module/amdgpu
  file /sys/module/amdgpu/version /sys/module/amdgpu/srcversion /sys/module/amdgpu/initstate
  around
  unserved
}

display() {
  at=$bus/$1
  class= id= driver=
  while IFS='=' read -r key value; do
    case $key in PCI_CLASS) class=$value ;; PCI_ID) id=$value ;; DRIVER) driver=$value ;; esac
  done <"$R$at/uevent"
  file "$at/class" "$at/vendor" "$at/device"
  case $class in '' | 3???? | 03???? | 1200??) ;; *) return 0 ;; esac
  folder "$at"
  link "$at"
  meta "$at/physfn"
  meta "$at/driver"
  file "$at/sriov_numvfs" "$at/numa_node"
  case $id in 1002:* | '') ;; *) return 0 ;; esac
  state "$1" || { sleeping="$sleeping $1"; return 0; }
  file "$at/unique_id" "$at/product_name" "$at/mem_info_vram_total" "$at/current_compute_partition" \
    "$at/current_memory_partition"
  if [ "$driver" = amdgpu ]; then awake="$awake $1"; fi
}

# Whether a card may be asked. A kernel without the file suspends none.
state() {
  state=$bus/$1/power/runtime_status
  [ -e "$R$state" ] || { gone "$state"; return 0; }
  word=
  if read -r word <"$R$state"; then frame t "$state" "$word$N"
  elif [ -n "$word" ]; then frame t "$state" "$word"
  else file "$state"; fi
  case $word in active | resuming | error | unsupported) return 0 ;; esac
  return 1
}

minors() {
  folder $drm
  for path in "$R$drm"/card* "$R$drm"/renderD*; do
    name=${path##*/}
    case ${name#card} in *[!0-9]*) case $name in renderD*) ;; *) continue ;; esac ;; esac
    [ -e "$path" ] || continue
    file "$drm/$name/dev"
    link "$drm/$name" "$drm/$name/device"
    [ -L "$path/device" ] || file "$drm/$name/device/uevent"
    meta "/dev/dri/$name"
  done
  meta /dev/kfd
  file /proc/devices
}

topology() {
  folder $kfd/topology/nodes
  file $kfd/dev $kfd/topology/generation_id
  for path in "$R$kfd"/topology/nodes/*; do
    [ -d "$path" ] || continue
    node=$kfd/topology/nodes/${path##*/}
    file "$node/properties" "$node/gpu_id"
    folder "$node/mem_banks"
    for bank in "$path"/mem_banks/*; do file "$node/mem_banks/${bank##*/}/properties"; done
    some
  done
}

# Engines that are named and not configured.
unserved() {
  for name in k3s rke2; do
    meta "/usr/local/bin/$name" "/usr/bin/$name" "/opt/$name/bin/$name" "/var/lib/rancher/$name/agent"
    at=/var/lib/rancher/$name/agent/etc/containerd
    meta "$at/config-v3.toml.tmpl" "$at/config.toml.tmpl"
    file "$at/config.toml"
  done
  meta /snap/bin/microk8s /snap/microk8s/current /var/snap/microk8s/current /usr/local/bin/k0s /usr/bin/k0s /etc/k0s \
    /opt/docker-desktop/bin/com.docker.backend /opt/docker-desktop
}

# What kind of machine this is.
around() {
  meta /dev/lxd /dev/incus /.dockerenv /run/.containerenv /run/systemd/system /dev/dxg
  file /run/systemd/container /proc/1/environ /sys/hypervisor/type /proc/sys/kernel/osrelease
  for name in product_name sys_vendor board_vendor bios_vendor; do file "/sys/class/dmi/id/$name"; done
  owned /etc/modules-load.d/amdgpu.conf
  # The first CPU's flags are enough, and the kernel makes the file longer with each one.
  if [ -f "$R/proc/cpuinfo" ]; then
    text= lines=0
    while [ $lines -lt 40 ] && IFS= read -r line; do
      lines=$((lines + 1)) text=$text$line$N
      case $line in flags*) break ;; esac
    done <"$R/proc/cpuinfo"
    frame t /proc/cpuinfo "$text"
  else gone /proc/cpuinfo; fi
}
