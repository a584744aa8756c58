#!/usr/bin/env bash
# AlphaZero with the settings of two published systems. The first argument is the preset (docs/sources.md):
#   connect4-zero              “Connect4-Zero: Architecture & Design”
#   connect-4-ai-1, -2         the two configurations of “Connect 4 AI”
#   connect-4-ai-2-printed     the second one, with the selection formula printed in the text
#   connect-4-ai-2-playouts    the second one, with rollouts played by the network
#   connect-4-ai-2-text        the second one, with both, as its text has them
# Creates .venv if it is missing. Run it again to resume.
#
#   pipelines/alphazero.sh connect4-zero --workers 2    # play games and arenas in two processes
#   pipelines/alphazero.sh connect-4-ai-1
#   pipelines/alphazero.sh connect-4-ai-2 small         # the same recipe with a few small iterations: minutes
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

preset=${1:-}
case $preset in
  connect4-zero) small=(--games 60 --set shard_games=20 --set arena.games=20 --iterations 3 --set replay.boards=4096) ;;
  connect-4-ai-1 | connect-4-ai-2 | connect-4-ai-2-printed | connect-4-ai-2-playouts | connect-4-ai-2-text)
    small=(--iterations 5)
    ;;
  *) fail "the presets are connect4-zero and connect-4-ai-1, -2, -2-printed, -2-playouts and -2-text, not '$preset'" ;;
esac
shift
model=models/$preset
if [ "${1:-}" = small ]; then
  shift
  model=$model-small
  set -- --simulations 32 "${small[@]}" "$@"
fi

set_up solver

say 'self-play and training'
"$python" -m distill.selfplay --preset "$preset" "$@" --out "$model"
say 'grading the network, alone and with search, against perfect play'
"$python" -m distill.evaluate "$model" "$model@puct:50" random uct:100 --boards 200 --out "$model/evaluation"
