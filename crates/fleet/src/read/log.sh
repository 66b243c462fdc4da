# The kernel's log as /dev/kmsg has it, and the journal.
# The kernel ends a read whose records it has overwritten (EPIPE): then the log is read anew, and the last frame counts.
kmsg() {
  [ -e "$R/dev/kmsg" ] || return 0
  for try in 1 2 3; do
    frame k '' ''
    { errors=$(dd "if=$R/dev/kmsg" iflag=nonblock bs=8192 2>&1 >&3 3>&-); } 3>&1
    case $errors in
      *iflag*)
        # busybox' dd always waits for the next record.
        errors=$(dd "if=$R/dev/kmsg" bs=8192 count=0 2>&1)
        case $errors in
          *"can't open"*) ;;
          *)
            { errors=$(follow 2>&1 >&3 3>&-); } 3>&1
            case $errors in *"read error: "*) errors="cat: $R/dev/kmsg: ${errors##*: }" ;; esac ;;
        esac ;;
    esac
    printf '\n%s\n' "$T"
    frame w "" "$errors"
    case $errors in *"Broken pipe"*) ;; *) break ;; esac
  done
}

# Prints the log and ends the process that does once it waits for the next record: its read of the log, and no write,
# is the call that it sleeps in. busybox' cat does not name the file that it could not read.
follow() {
  "$cat" "$R/dev/kmsg" &
  reader=$!
  tries=0
  while [ $tries -lt 100 ]; do
    tries=$((tries + 1)) ended= call=
    read -r _ _ ended _ <"/proc/$reader/stat" || break
    [ "$ended" != Z ] || break
    read -r _ call _ <"/proc/$reader/syscall" || :
    case $call in 0x[03-9]) break ;; esac
    sleep 0.05 || sleep 1
  done 2>/dev/null
  kill "$reader" 2>/dev/null
  wait "$reader" 2>/dev/null
}

# What `health` judges by.
judged() {
  owned /etc/rocworker/health-rules.toml /etc/rocworker/wrapper.json
  [ -e "$R/dev/kmsg" ] || gone /dev/kmsg
}

journal() {
  folder /run/log/journal
  folder /var/log/journal
}

# A frame with a program's stdout, then one with its stderr and exit code; 127 where it is not there.
printed() {
  frame j '' ''
  code=127 errors=
  if command -v "$1" >/dev/null; then
    { errors=$("$@" 2>&1 >&3 3>&-); code=$?; } 3>&1
  fi
  printf '\n%s\n' "$T"
  frame w "$code" "$errors"
}

# What advice on a message needs of the machine (crates/explain/src/here.rs).
here() {
  for at in /usr/bin /usr/local/bin /opt/rocm/bin; do meta $at/amd-smi $at/rocm-smi; done
  meta /var/lib/kubelet
  file /proc/sys/kernel/hostname /etc/hostname
  units
}
