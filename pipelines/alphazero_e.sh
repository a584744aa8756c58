#!/usr/bin/env bash
# “Connect 4 AI”, 2021: small windows of games, rows sampled from them, SGD, and no gate. e1 is the published run that
# never learned to block; e2 has more games, more passes and a falling rate.
# Makes .venv where it is missing. Started again, it goes on where it was stopped.
#
#   pipelines/alphazero_e.sh e1           # as published
#   pipelines/alphazero_e.sh e2
#   pipelines/alphazero_e.sh e1 small     # the same recipe, a few small iterations: minutes
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

preset=${1:-e1}
case $preset in
  e1 | e2) ;;
  *) fail "the configurations are e1 and e2, not $preset" ;;
esac
[ "$#" = 0 ] || shift
model=models/alphazero-$preset
if [ "${1:-}" = small ]; then
  shift
  model=$model-small
  set -- --simulations 32 --iterations 5 "$@"
fi

set_up solver

say 'self-play and training, again and again'
"$python" -m distill.selfplay --preset "$preset" --out "$model" "$@"
say 'every move of the network, alone and with its search, against perfect play'
"$python" -m distill.evaluate "$model" "$model@puct:50" random uct:100 --boards 200 --out "$model/evaluation"
