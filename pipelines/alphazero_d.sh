#!/usr/bin/env bash
# “Connect4-Zero: Architecture & Design”: AlphaZero on the residual network without batch norm, 600 simulations, gate at 55 %.
# Makes .venv where it is missing. Started again, it goes on where it was stopped.
#
#   pipelines/alphazero_d.sh              # as published; --precision bfloat16 takes 10 to 13 minutes of a core an iteration
#   pipelines/alphazero_d.sh small        # the same recipe with fewer games and simulations: minutes
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

model=models/alphazero-d
if [ "${1:-}" = small ]; then
  shift
  model=models/alphazero-d-small
  set -- --simulations 32 --games 60 --shard-games 20 --arena-games 20 --iterations 3 --train-boards 4096 "$@"
fi

set_up solver

say 'self-play, training and arena, again and again'
"$python" -m distill.selfplay --preset d --out "$model" "$@"
say 'every move of the network, alone and with its search, against perfect play'
"$python" -m distill.evaluate "$model" "$model@puct:50" random uct:100 --boards 200 --out "$model/evaluation"
