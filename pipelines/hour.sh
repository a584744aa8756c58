#!/usr/bin/env bash
# Trains a strong network in an hour, unattended. The teacher plays first, then the network's own search plays while
# the network trains. Afterwards the network is graded and exported. Creates .venv if it is missing. Run it again to
# resume.
#
#   pipelines/hour.sh          # one hour on 2 cores
#   pipelines/hour.sh 480      # minutes; from 240 on, with the preset `night`
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
say 'grading the network, without search, and three searches against perfect play'
"$python" -m distill.evaluate "$model" uct:100 uct:1000 uct:100000 --out "$model/evaluation"
"$python" pipelines/time_to_strength.py "$model" --plot "$model/time-to-strength.png"
"$python" -m distill.export "$model"
