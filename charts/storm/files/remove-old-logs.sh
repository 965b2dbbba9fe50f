#!/bin/bash
# Removes the logs of topologies that have ended: `remove-old-logs.sh DAYS ARTIFACTS CODE`. Storm's log viewer would, and
# does not run here.
#   DAYS        how long logs are kept after their last line
#   ARTIFACTS   storm.workers.artifacts.dir: a folder for each topology
#   CODE        the supervisor's stormdist: as long as a topology's code is here, its workers may be, however silent.
#               Where there is no such folder nobody can tell, and all logs stay
set -u
shopt -s nullglob
[ -d "$3" ] || exit 0

for logs in "$2"/*/; do
  topology=$(basename "$logs")
  [ ! -e "$3/$topology" ] || continue
  [ -z "$(find "$logs" -mtime "-$1" -print -quit)" ] || continue
  rm -rf "$logs"
  echo "removed the logs of $topology, which has ended: none of them was written to for $1 days"
done
