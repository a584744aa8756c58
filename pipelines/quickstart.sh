#!/usr/bin/env bash
# From nothing to a graded network in minutes: plays games with the real teacher, trains the CNN on them, exports it
# and grades it. Makes .venv where it is missing. What is here already is kept: a second run only grades.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

games=600               # 10,000 simulations x 3 votes a move, the defaults of `generate`
minutes=3               # of training, at most
epochs=36               # few games need more passes than the default, and smaller batches, to make as many steps
arena_games=100         # against each rival
data=data/quickstart    # beside the defaults of the commands, never in their way
model=models/quickstart

set_up solver
SECONDS=0

say "1/5  the teacher plays $games games"
"$python" -m distill.generate --games "$games" --out "$data"
say "2/5  the CNN learns from them, $minutes minutes"
"$python" -m distill.train --arch cnn --data "$data" --out "$model" \
  --epochs "$epochs" --batch-size 128 --minutes "$minutes"
say '3/5  export, for apps that have TensorFlow but not this project'
"$python" -m distill.export "$model"
say '4/5  the network without search against a random player and a search of 100 simulations'
"$python" -m distill.arena "$model" random uct:100 --games "$arena_games"
say '5/5  every move of the network and of both rivals against perfect play'
"$python" -m distill.evaluate "$model" random uct:100 --out "$model/evaluation"
say "done in $((SECONDS / 60)) min $((SECONDS % 60)) s, without the downloads; agreement: $model/metrics.json"
