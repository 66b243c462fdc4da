# Units of systemd, with their drop-ins.
units() {
  for at in /etc/systemd/system /run/systemd/system /usr/local/lib/systemd/system /usr/lib/systemd/system \
    /lib/systemd/system; do
    folder $at
    for name in containerd docker crio concourse-worker concourse podman rocworker rocworker-boot \
      rocworker-exporter rocm-exporter; do
      meta $at/$name.service
      if [ -f "$R$at/$name.service" ]; then file $at/$name.service; fi
      drop_ins $at/$name.service.d
    done
    for path in "$R$at"/*concourse*.service; do
      [ ! -f "$path" ] || owned "$at/${path##*/}"
    done
    drop_ins $at/concourse-.service.d
    drop_ins $at/service.d
  done
  folder /etc/systemd/system/multi-user.target.wants
}

drop_ins() { if [ -e "$R$1" ]; then configs "$1" '*.conf'; else gone "$1"; fi; }

# A folder, and the plain files in it that are no programs: of some kinds, or all.
configs() {
  folder "$1"
  for path in "$R$1"/*; do
    [ -f "$path" ] || continue
    case ${path##*/} in ${2-*}) owned "$1/${path##*/}" ;; esac
    some
  done
}
