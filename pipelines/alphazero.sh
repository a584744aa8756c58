#!/usr/bin/env bash
# AlphaZero as two published systems have it, by the name of the preset: connect4-zero is
# “Connect4-Zero: Architecture & Design”, connect-4-ai-1 and -2 are the configurations of “Connect 4 AI” (docs/sources.md),
# the second also with the selection term that it prints, -2-printed, and with playouts by the network, -2-playouts.
# Makes .venv where it is missing. Started again, it goes on where it was stopped.
#
#   pipelines/alphazero.sh connect4-zero --workers 2      # games and arenas in so many processes
#   pipelines/alphazero.sh connect-4-ai-1
#   pipelines/alphazero.sh connect-4-ai-2 small     # the same recipe, a few small iterations: minutes
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

preset=${1:-}
case $preset in
  connect4-zero) small=(--games 60 --shard-games 20 --arena-games 20 --iterations 3 --train-boards 4096) ;;
  connect-4-ai-1 | connect-4-ai-2 | connect-4-ai-2-printed | connect-4-ai-2-playouts) small=(--iterations 5) ;;
  *) fail "the presets are connect4-zero, connect-4-ai-1 and connect-4-ai-2, -printed and -playouts, not '$preset'" ;;
esac
shift
model=models/$preset
if [ "${1:-}" = small ]; then
  shift
  model=$model-small
  set -- --simulations 32 "${small[@]}" "$@"
fi

set_up solver

say 'self-play and training, again and again'
"$python" -m distill.selfplay --preset "$preset" --out "$model" "$@"
say 'every move of the network, alone and with its search, against perfect play'
"$python" -m distill.evaluate "$model" "$model@puct:50" random uct:100 --boards 200 --out "$model/evaluation"
