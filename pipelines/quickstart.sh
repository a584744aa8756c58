#!/usr/bin/env bash
# Trains and grades two networks from scratch in minutes. The CNN learns from games of the teacher at full strength.
# Our own network learns from many cheap labels and then from its own search. Both are exported and graded.
# Creates .venv if it is missing. Finished steps are kept: a second run only exports, plays and grades.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

games=600               # with the defaults of `generate`: 3 votes of 10,000 simulations a move
minutes=3               # time limit of the other network, games included
epochs=36               # few games need more epochs and smaller batches for enough steps
arena_games=100         # against each opponent
data=data/quickstart    # not the default folder of `generate`
model=models/quickstart
own=models/quickstart-own

set_up solver
SECONDS=0

say "1/6  the teacher plays $games games"
"$python" -m distill.generate --games "$games" --out "$data"
say "2/6  the CNN trains on them for $epochs epochs"
"$python" -m distill.train --arch cnn --data "$data" --out "$model" \
  --epochs "$epochs" --batch-size 128
say "3/6  our own network trains from scratch for $minutes minutes: first on short searches, then on its own"
"$python" -m distill.selfplay --preset hour --minutes "$minutes" --out "$own"
say '4/6  export for apps that use TensorFlow without this project'
"$python" -m distill.export "$model"
"$python" -m distill.export "$own"
say '5/6  arena from the empty board: both networks without search, a random player, UCT with 100 and 1,000 simulations'
"$python" -m distill.arena "$own" "$model" random uct:100 uct:1000 --opening-plies 0 --games "$arena_games"
say '6/6  grading the networks and searches against perfect play'
"$python" -m distill.evaluate "$own" "$model" random uct:100 uct:1000 --out "$own/evaluation"
say "done in $((SECONDS / 60)) min $((SECONDS % 60)) s, downloads not included; top-1 accuracy: $model/_run.json"
