#!/bin/sh
# DynamoDB Local for tests and recordings: in memory, with streams and transactions.
#
#   scripts/dynamodb-local.sh start [PORT]   start it (port 8000) and print its endpoint URL; already up is fine
#   scripts/dynamodb-local.sh stop [PORT]    stop it
#   scripts/dynamodb-local.sh fetch          only fetch it
#
# The jars come by Maven into ${WEIR_SERVICES:-~/.cache/weir-services}. Without java, mvn or curl it exits 77.
set -eu
. "$(dirname "$0")/service.sh"

version=2.6.1
usage() { say "usage: start|stop|fetch [PORT]"; exit 2; }
[ $# -ge 1 ] && [ $# -le 2 ] || usage
port=${2:-8000}
pidfile=$run/dynamodb-local-$port.pid
log=$run/dynamodb-local-$port.log
url=http://127.0.0.1:$port

case $1 in
fetch)
  jars dynamodb-local com.amazonaws DynamoDBLocal "$version" >/dev/null
  ;;
start)
  need java curl
  mkdir -p "$run"
  if ! alive "$pidfile"; then
    if answers "$url"; then
      say "port $port is taken by something this script did not start"
      exit 3
    fi
    dir=$(jars dynamodb-local com.amazonaws DynamoDBLocal "$version")
    cd "$run" # it leaves a small file in the folder it runs in
    nohup java -Xmx1g -Djava.library.path="$dir" -cp "$dir/*" \
      com.amazonaws.services.dynamodbv2.local.main.ServerRunner -inMemory -port "$port" \
      >"$log" 2>&1 </dev/null &
    echo $! >"$pidfile"
  fi
  await "$pidfile" "$url" "$log" 60
  printf '%s\n' "$url"
  ;;
stop)
  halt "$pidfile"
  ;;
*)
  usage
  ;;
esac
