#!/bin/bash
# Runs one of Storm's daemons: `run-daemon.sh java ...`. Settings come from the environment:
#   WAIT_FOR_PORT   host:port[,host:port...]: start the daemon, each time, once one of them accepts connections. Until then
#                   there is a file /tmp/waiting, by which the pod's probes know that it is well all the same.
#   KEEP_RUNNING    yes: start a daemon that died again. Storm's supervisors fail fast and count on that: their workers
#                   go on, while the end of the container would be their end too. Quick deaths in a row end it all the same.
#   DRAIN_SECONDS   told to end, end the daemon at once but stay for at most so long while workers run. Once an operator
#                   has moved their executors they see that, and end by themselves. Nimbus moves none while they run.
#   KEEP_LOGS_DAYS  remove, once an hour, the logs of topologies that ended so long ago. Needs LOGS and CODE, see
#                   remove-old-logs.sh.
set -u

QUICK_DEATH_SECONDS=10
QUICK_DEATHS=5
WAITING=${TMPDIR:-/tmp}/waiting

# Nobody refuses a connection to the address that a deleted pod had: it would be tried for minutes.
port_answers() {
  local address
  for address in ${WAIT_FOR_PORT//,/ }; do
    timeout 2 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "${address%:*}" "${address##*:}" 2>/dev/null && return
  done
  return 1
}

wait_for_port() {
  port_answers || echo "waiting for $WAIT_FOR_PORT"
  until port_answers; do
    touch "$WAITING"
    pause 1
    [ -z "$ending" ] || break
  done
  rm -f "$WAITING"
}

# In the background, so that a signal is heard at once.
pause() {
  sleep "$1" &
  wait $!
}

# Workers and their log writers. The pattern does not match itself on grep's own command line.
workers() {
  grep --files-with-matches --null-data --line-regexp \
    'org[.]apache[.]storm[.]daemon[.]worker[.]Worker' /proc/[0-9]*/cmdline 2>/dev/null | cut --delimiter=/ --fields=3
}

drain() {
  local left deadline=$((SECONDS + DRAIN_SECONDS))
  left=$(workers)
  [ -n "$left" ] || return
  echo "draining: workers may go on for ${DRAIN_SECONDS} s, until their executors run elsewhere"
  while [ -n "$left" ] && [ "$SECONDS" -lt "$deadline" ]; do
    # When the whole cluster ends nobody is there to take over.
    [ -z "${WAIT_FOR_PORT:-}" ] || port_answers || break
    pause 1
    left=$(workers)
  done
  if [ -z "$left" ]; then
    echo "draining: no worker is left"
    return
  fi
  echo "draining: it is no use to wait longer, ending what is left"
  kill -TERM $left 2>/dev/null
  deadline=$((SECONDS + 5))
  while [ -n "$(workers)" ] && [ "$SECONDS" -lt "$deadline" ]; do
    pause 1
  done
}

run_once() {
  "$@" &
  daemon=$!
  wait "$daemon"
  status=$?
  # A signal ends `wait` early.
  while kill -0 "$daemon" 2>/dev/null; do
    wait "$daemon"
    status=$?
  done
  daemon=
}

told_to_end() {
  ending=yes
  if [ -n "$daemon" ]; then kill -TERM "$daemon" 2>/dev/null; fi
}

remove_old_logs() {
  while true; do
    /bin/bash "$(dirname "$0")/remove-old-logs.sh" "$KEEP_LOGS_DAYS" "$LOGS" "$CODE"
    sleep 3600
  done
}

ending=
daemon=
quick_deaths=0
trap told_to_end TERM INT
[ "${KEEP_LOGS_DAYS:-0}" = 0 ] || remove_old_logs &

while [ -z "$ending" ]; do
  [ -z "${WAIT_FOR_PORT:-}" ] || wait_for_port
  [ -z "$ending" ] || break
  started=$SECONDS
  run_once "$@"
  [ -n "$ending" ] && break
  [ "${KEEP_RUNNING:-}" = yes ] || exit "$status"
  if [ $((SECONDS - started)) -lt "$QUICK_DEATH_SECONDS" ]; then
    quick_deaths=$((quick_deaths + 1))
  else
    quick_deaths=0
  fi
  [ "$quick_deaths" -lt "$QUICK_DEATHS" ] || exit "$status"
  echo "the daemon ended with status $status, starting it again"
  pause 1
done
[ "${DRAIN_SECONDS:-0}" -gt 0 ] && drain
exit 0
