#!/usr/bin/env bash
# From nothing to graded networks in minutes: plays games with the real teacher, trains the CNN on them, exports and
# grades it; beside it a network of our own, which learns from many cheap labels and then from its own search.
# Makes .venv where it is missing. What is here already is kept: a second run only exports, plays and grades.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

games=600               # 10,000 simulations x 3 votes a move, the defaults of `generate`
minutes=2               # of the CNN's training, at most
own_minutes=3           # of the other network, its games and its training
epochs=36               # few games need more passes than the default, and smaller batches, to make as many steps
arena_games=100         # against each rival
data=data/quickstart    # beside the defaults of the commands, never in their way
model=models/quickstart
own=models/quickstart-own

set_up solver
SECONDS=0

say "1/6  the teacher plays $games games"
"$python" -m distill.generate --games "$games" --out "$data"
say "2/6  the CNN learns from them, $minutes minutes"
"$python" -m distill.train --arch cnn --data "$data" --out "$model" \
  --epochs "$epochs" --batch-size 128 --minutes "$minutes"
say "3/6  our own network, from nothing: short searches of the teacher, then its own, $own_minutes minutes"
"$python" -m distill.selfplay --preset hour --minutes "$own_minutes" --out "$own"
say '4/6  export, for apps that have TensorFlow but not this project'
"$python" -m distill.export "$model"
"$python" -m distill.export "$own"
say '5/6  both without search against a random player and searches of 100 and 1,000 simulations, from the empty board'
"$python" -m distill.arena "$own" "$model" random uct:100 uct:1000 --opening-plies 0 --games "$arena_games"
say '6/6  every move of the networks and of the searches against perfect play'
"$python" -m distill.evaluate "$own" "$model" random uct:100 uct:1000 --out "$own/evaluation"
say "done in $((SECONDS / 60)) min $((SECONDS % 60)) s, without the downloads; agreement: $model/metrics.json"
