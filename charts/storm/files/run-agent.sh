#!/bin/bash
# Runs the agent beside the supervisor of this pod: `run-agent.sh storm-operator agent ...`. It is told of all other
# supervisors there may be, and probes their agents (some of many); those that are not there (yet) just do not answer.
#   POD_NAME PEER_COUNT PEER_DOMAIN   supervisors are ${POD_NAME%-*}-0 ... in that domain, PEER_COUNT of them
set -u
peers=()
for ((ordinal = 0; ordinal < PEER_COUNT; ordinal++)); do
  peer="${POD_NAME%-*}-$ordinal"
  [ "$peer" = "$POD_NAME" ] || peers+=(--peer "$peer.$PEER_DOMAIN=$peer.$PEER_DOMAIN:9464")
done
exec "$@" "${peers[@]}"
