# Functions that each part of the script uses. A frame is `KIND A B`, A bytes of a path or of names, B bytes of data.
# Nothing is written here but to stdout: a full disk does not matter. LC_ALL=C: ${#x} counts bytes, errors are English.
LC_ALL=C
export LC_ALL
# A user's start files may have ls quote its names and round its sizes.
unset QUOTING_STYLE BLOCK_SIZE BLOCKSIZE LS_BLOCK_SIZE TIME_STYLE
set -u
N='
'
# Variables that end in _ are a function's own: POSIX has no others.
# Paths, one a line. F: files to read; C: the same with a mark after each; L: for ls; M: links that ls follows; A: what
# is not there; P: what is behind a folder that may not be entered; E: folders that seem empty.
F= C= AF= AC= L= M= A= P= E=

frame() { printf '%s %s %s\n%s%s\n' "$1" ${#2} ${#3} "$2" "$3"; }

# True for names with a newline or ` -> `, which the frame format cannot carry: such a file is listed and never read.
broken() { case $1 in *"$N"* | *' -> '*) ;; *) return 1 ;; esac; }

# True for a dangling link too, which -e follows.
there() { [ -e "$R$1" ] || [ -L "$R$1" ]; }

# Records a path as absent, or as denied behind a folder that may not be entered.
gone() {
  up_=${1%/*} top_=$1
  while [ -n "$up_" ] && ! [ -d "$R$up_" ]; do top_=$up_ up_=${up_%/*}; done
  if [ -x "$R$up_/" ]; then
    A=$A$1$N
    if [ "$top_" != "$1" ] && ! [ -e "$R$top_" ]; then A=$A$top_$N; fi
  else P=$P$1$N; fi
}

# Files to read. What is no plain file is asked of ls alone: a fifo would never end.
file() {
  for it_ do
    if [ -f "$R$it_" ]; then
      broken "$it_" && continue
      F=$F$it_$N C=$C$R$it_$N/proc/self/environ$N
    else meta "$it_"; fi
  done
}

# What is at a path, a link itself and not what it leads to.
meta() {
  for it_ do
    broken "$it_" && continue
    if [ -L "$R$it_" ]; then L=$L$it_$N M=$M$it_$N
    elif [ -e "$R$it_" ]; then L=$L$it_$N
    else gone "$it_"; fi
  done
}

# Files whose owner and mode count.
owned() {
  for own_ do
    [ ! -f "$R$own_" ] || file "$own_"
    meta "$own_"
  done
}

# A link alone, in a folder of the kernel's.
link() {
  for it_ do
    broken "$it_" && continue
    if there "$it_"; then L=$L$it_$N; else gone "$it_"; fi
  done
}

# Prints a folder's names, separated by slashes.
folder() {
  [ ! -L "$R$1" ] || meta "$1"
  if [ -d "$R$1" ] && cd "$R$1" 2>/dev/null; then
    in_=$1
    set -- *
    if [ $# = 1 ] && ! [ -e "./$1" ] && ! [ -L "./$1" ]; then set --; fi
    case $in_ in
      /sys/*) ;; # The kernel hides no name.
      *)
        for name_ in .[!.]* ..?*; do
          if [ -e "./$name_" ] || [ -L "./$name_" ]; then set -- "$@" "$name_"; fi
        done ;;
    esac
    IFS=/
    frame d "$in_" "$*"
    IFS=$W
    if [ $# = 0 ]; then E=$E$in_$N; fi
    cd /
  elif there "$1"; then
    meta "$1"
    E=$E$1$N
  else gone "$1"; fi
}
W=' 	'$N

# What an earlier answer lacked, and the folders above it: one may be a link.
described() {
  for above_ do
    broken "$above_" && continue
    while [ -n "$above_" ]; do meta "$above_"; above_=${above_%/*}; done
  done
}

# Describes paths and reads their contents. A card that fell asleep since the earlier answer may have one of
# the partitions.
named() {
  for named_ do
    case $named_ in /sys/class/drm/*) [ "$sleeping" = "$asleep" ] || continue ;; esac
    described "$named_"
    broken "$named_" && continue
    if [ -d "$R$named_" ]; then folder "$named_"; elif [ -f "$R$named_" ]; then file "$named_"; fi
    some
  done
}

# Prints the contents of all files by one `cat`, which passes bytes that no shell can hold. The mark after each file is
# /proc/self/environ of that cat, whose environment is the random word alone.
contents() {
  AF=$AF$F AC=$AC$C F= C=
  [ -n "$AF" ] || return 0
  frame f "" "$AF"
  IFS=$N
  set -f
  { errors=$(env -i "R=$T" "$cat" $AC 2>&1 >&3 3>&-); } 3>&1
  printf '\n'
  # busybox does not say which file it could not read: those that give nothing are tried one by one.
  case $errors in
    *"read error"*)
      for path in $AF; do
        read -r line <"$R$path" || [ -n "$line" ] || {
          line=$("$cat" "$R$path" 2>&1 >/dev/null)
          [ -z "$line" ] || frame x "$path" "$line"
        }
      done 2>/dev/null
      errors= ;;
  esac
  set +f
  IFS=$W
  frame w "" "$errors"
  AF= AC=
}

# Called after each device, because a shell adds to a short list faster. Prints a long list: a command's arguments have
# a limit.
some() {
  AF=$AF$F AC=$AC$C F= C=
  [ ${#AC} -lt 400000 ] || contents
}

# begin UID TIME
begin() {
  cat=/bin/cat
  [ -x $cat ] || cat=$(command -v cat)
  printf '\nrocworker-frames 1 %s\n' "$T"
  frame about "$R" "$1 $2"
}

# Everything that was collected.
collected() {
  frame a "" "$A"
  frame p "" "$P"
  IFS=$N
  set -f
  prefixed=
  for path in $L; do prefixed=$prefixed$R$path$N; done
  if [ -n "$L" ]; then frame l "$L" "$(ls -ldn $prefixed 2>/dev/null)"; fi
  prefixed=
  for path in $M; do prefixed=$prefixed$R$path$N; done
  if [ -n "$M" ]; then frame m "$M" "$(ls -ldnL $prefixed 2>&1)"; fi
  prefixed=
  for path in $E; do prefixed=$prefixed$R$path$N; done
  if [ -n "$E" ]; then frame e "$E" "$(ls $prefixed 2>&1 >/dev/null)"; fi
  set +f
  IFS=$W
  contents
}

end() { frame end "" "$sleeping"; }
