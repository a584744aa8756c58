#!/usr/bin/env bash
# Expert iteration: in each iteration the network's search labels new games, and the network trains on them.
# Creates .venv if it is missing. Run it again to resume.
#
#   pipelines/improve_distilled.sh MODEL            # a network with a value head (train --value-target blend)
#   pipelines/improve_distilled.sh MODEL small      # two small iterations: minutes
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

[ "$#" -gt 0 ] || fail 'name the folder of a trained network with a value head (train --value-target blend)'
start=$1
shift
model=models/improved
if [ "${1:-}" = small ]; then
  shift
  model=models/improved-small
  set -- --simulations 16 --games 100 --set arena.games=20 --iterations 2 --set replay.boards=4096 "$@"
fi

set_up solver

say 'self-play, training and arena'
"$python" -m distill.selfplay --preset improve --init "$start" "$@" --out "$model"
say 'grading the networks before and after, without search, against perfect play'
"$python" -m distill.evaluate "$start" "$model" --out "$model/evaluation"
