# How the cards are, as crates/amdgpu/src/readings reads it: never pcie_bw, which takes a second, and never xgmi_error,
# whose read clears the state in the hardware.
readings() {
  folder /sys/class/devcoredump
  file /sys/class/devcoredump/disabled
  for path in "$R"/sys/class/devcoredump/*/failing_device; do
    dump=${path%/failing_device}
    if [ -L "$path" ]; then link "/sys/class/devcoredump/${dump##*/}/failing_device"; fi
  done
  for address in $awake; do card "$bus/$address"; done
  partitions
}

card() {
  for name in gpu_busy_percent mem_busy_percent vcn_busy_percent mem_info_vram_total mem_info_vram_used \
    mem_info_vis_vram_total mem_info_vis_vram_used mem_info_gtt_total mem_info_gtt_used current_link_speed \
    max_link_speed current_link_width max_link_width pcie_replay_count vbios_version gpu_metrics pp_dpm_sclk \
    pp_dpm_mclk pp_dpm_fclk pp_dpm_socclk pp_dpm_vclk pp_dpm_dclk; do
    file "$1/$name"
  done
  meta "$1/pcie_bw"
  folder "$1/hwmon"
  for chip in "$R$1"/hwmon/*; do
    [ -d "$chip" ] || continue
    chip=$1/hwmon/${chip##*/}
    folder "$chip"
    for path in "$R$chip"/temp*_* "$R$chip"/power1_* "$R$chip"/energy1_* "$R$chip"/freq*_* "$R$chip"/in*_* "$R$chip"/fan*_* \
      "$R$chip"/name; do
      [ ! -f "$path" ] || file "$chip/${path##*/}"
    done
  done
  folder "$1/ras"
  for path in "$R$1"/ras/*_err_count "$R$1"/ras/gpu_vram_bad_pages; do
    [ ! -f "$path" ] || file "$1/ras/${path##*/}"
  done
  folder "$1/fw_version"
  for path in "$R$1"/fw_version/*_fw_version; do
    [ ! -f "$path" ] || file "$1/fw_version/${path##*/}"
  done
  some
}

# A partition's own file would wake its card, and sysfs names no card of a partition beyond the first. If a card is
# suspended, the script leaves those to `named`: rocworker knows the cards of partitions by the first answer.
partitions() {
  for path in "$R$drm"/renderD*; do
    name=${path##*/}
    [ -d "$path/device" ] || continue
    cd -P "$path/device" || continue
    own=${PWD##*/}
    cd /
    case " $awake " in
      *" $own "*) ;;
      *) case $own in amdgpu_xcp*) [ -z "$sleeping" ] || continue ;; *) continue ;; esac ;;
    esac
    folder "$drm/$name/device/xcp"
    if [ -d "$path/device/xcp" ]; then file "$drm/$name/device/xcp/xcp_metrics"; fi
  done
}

# What the daemon publishes, and the wrapper's policy, whose owner and mode count.
published() {
  meta /run/rocworker
  owned /run/rocworker/exporter.json /run/rocworker/health.json /etc/rocworker/wrapper.json
}

# The links between KFD's nodes: of 64 partitions 4,000 files.
links() {
  for path in "$R$kfd"/topology/nodes/*; do
    [ -d "$path" ] || continue
    node=$kfd/topology/nodes/${path##*/}
    folder "$node/io_links"
    for way in "$path"/io_links/*; do
      [ ! -d "$way" ] || file "$node/io_links/${way##*/}/properties"
    done
    some
  done
}

# Who uses the GPUs: crates/amdgpu/src/processes.rs.
processes() {
  file /proc/uptime
  meta /proc/self/ns/pid
  folder $kfd/proc
  for path in "$R$kfd"/proc/*; do
    pid=${path##*/}
    case $pid in *[!0-9]*) continue ;; esac
    folder "$kfd/proc/$pid"
    for context in "$path" "$path"/context_*; do
      [ -d "$context" ] || continue
      if [ "$context" != "$path" ]; then folder "${context#"$R"}"; fi
      context "${context#"$R"}"
    done
    file "/proc/$pid/comm" "/proc/$pid/cgroup" "/proc/$pid/stat"
    some
  done
}

context() {
  folder "$1/queues"
  queues=
  for path in "$R$1"/queues/*; do
    [ -d "$path" ] || continue
    file "$1/queues/${path##*/}/gpuid"
    queues=1
  done
  for path in "$R$1"/vram_*; do
    [ -f "$path" ] || continue
    file "$1/${path##*/}"
    used=
    read -r used <"$path" || :
    # The kernel asks the GPU's registers for this: only of a process that has something there.
    case $queues$used in '' | 0) continue ;; esac
    file "$1/stats_${path##*_}/cu_occupancy"
  done 2>/dev/null
}
