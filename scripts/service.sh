# Shared by the scripts that need a service or a tool from elsewhere; not run by itself.
#
# A service is a folder of jars that Maven copied, a process id in a file, and a log:
#   $WEIR_SERVICES/NAME-VERSION/   the jars; complete when the file .complete is there
#   $WEIR_SERVICES/run/            NAME-PORT.pid, NAME-PORT.log, NAME-PORT.data
# All of it may be deleted at any time while nothing runs.

services=${WEIR_SERVICES:-$HOME/.cache/weir-services}
mkdir -p "$services"
services=$(cd "$services" && pwd)
run=$services/run

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# need COMMAND…: exit 77 ("skipped") where a command is missing.
need() {
  for c in "$@"; do
    command -v "$c" >/dev/null 2>&1 || { say "needs \`$c\`, which is not installed here"; exit 77; }
  done
}

# jars NAME GROUP ARTIFACT VERSION: print the folder of jars, fetching it first where it is not complete.
jars() {
  dir=$services/$1-$4
  if [ ! -e "$dir/.complete" ]; then
    need mvn
    say "fetching $2:$3:$4 into $dir"
    tmp=$dir.$$
    mkdir -p "$tmp"
    cat >"$tmp/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>weir</groupId><artifactId>$1</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>$2</groupId><artifactId>$3</artifactId><version>$4</version></dependency>
  </dependencies>
</project>
POM
    if ! mvn -q -B -f "$tmp/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$tmp" >"$tmp/mvn.log" 2>&1; then
      tail -n 20 "$tmp/mvn.log" >&2
      rm -rf "$tmp"
      say "Maven could not fetch $2:$3:$4"
      return 3
    fi
    touch "$tmp/.complete"
    # If two fetches run at once, the second keeps the first one's folder.
    if ! mv -T "$tmp" "$dir" 2>/dev/null; then
      if [ -e "$dir/.complete" ]; then
        rm -rf "$tmp"
      else
        rm -rf "$dir" && mv -T "$tmp" "$dir" || return 3
      fi
    fi
  fi
  printf '%s\n' "$dir"
}

# workspace: make the folder $work. At the end of the script it is removed, after the processes $pid
# were ended, if the script has set it.
workspace() {
  work=$(mktemp -d)
  pid=
  trap leave EXIT
}

leave() {
  [ -z "$pid" ] || kill $pid 2>/dev/null || true
  [ -z "$pid" ] || wait $pid 2>/dev/null || true
  rm -rf "$work"
}

# serve PROGRAM ARGUMENT…: start $work/PROGRAM on a free port, its errors in $work/log. It sets $pid,
# and $address to the URL that the program says; if it says none in half a minute, the script ends.
serve() {
  : >"$work/log"
  program=$1
  shift
  "$work/$program" "$@" --addr 127.0.0.1:0 2>"$work/log" &
  pid=$!
  address=
  n=0
  while [ $n -lt 150 ]; do
    address=$(grep -o 'http://127.0.0.1:[0-9]*' "$work/log" | head -n 1 || true)
    [ -z "$address" ] || return 0
    kill -0 "$pid" 2>/dev/null || break
    n=$((n + 1))
    sleep 0.2
  done
  cat "$work/log" >&2
  say "$program $1 does not start"
  exit 1
}

# runs PIDFILE: whether the process with the id in the file is running, of whichever program.
runs() { [ -s "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }

# alive PIDFILE: whether it is running and is one of these services: a file that a restart
# left behind may name any process. False for a moment after a start too, until java is loaded.
# Plain ps cuts its lines at $COLUMNS.
alive() {
  runs "$1" &&
    { tr '\0' ' ' <"/proc/$(cat "$1")/cmdline" || ps -ww -o args= -p "$(cat "$1")"; } 2>/dev/null | grep -qF "$services"
}

# answers URL: whether anything speaks HTTP there; which status it gives does not matter.
answers() { curl -s -o /dev/null --max-time 2 "$1"; }

# await PIDFILE URL LOG SECONDS: return when the service answers; fail when it ends or takes too long.
await() {
  n=0
  until answers "$2"; do
    runs "$1" || { say "ended while starting; its last words:"; tail -n 20 "$3" >&2; return 3; }
    n=$((n + 1))
    [ $n -lt $(($4 * 5)) ] || { say "did not answer on $2 within $4 s; see $3"; return 3; }
    sleep 0.2
  done
}

# halt PIDFILE: end the process, if there is one, and wait for it.
halt() {
  if alive "$1"; then
    pid=$(cat "$1")
    kill "$pid"
    n=0
    while kill -0 "$pid" 2>/dev/null; do
      n=$((n + 1))
      [ $n -lt 50 ] || { kill -9 "$pid" 2>/dev/null; break; }
      sleep 0.1
    done
  fi
  rm -f "$1"
}
