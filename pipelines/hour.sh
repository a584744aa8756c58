#!/usr/bin/env bash
# A strong network in an hour, by one command that needs no hand: the teacher plays first, then the network's own search,
# while the network learns; then every move is graded, and the network is exported. Makes .venv where it is missing.
# Started again, it goes on where it was stopped.
#
#   pipelines/hour.sh          # an hour on 2 cores
#   pipelines/hour.sh 480      # minutes: a night; from four hours on its preset
#   MODEL=models/mine pipelines/hour.sh 6
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

minutes=${1:-60}
[[ $minutes =~ ^[1-9][0-9]*$ ]] || fail "$minutes: not a whole number of minutes"
[ "$minutes" -lt 240 ] && preset=hour || preset=night
model=${MODEL:-models/hour-$minutes}
set_up solver

"$python" -m distill.selfplay --preset "$preset" --minutes "$minutes" --out "$model"
say 'every move of the network, in one pass, and of three searches, against perfect play'
"$python" -m distill.evaluate "$model" uct:100 uct:1000 uct:100000 --no-latency --out "$model/evaluation"
"$python" benchmarks/time_to_strength.py "$model" --plot "$model/time-to-strength.png"
"$python" -m distill.export "$model"
