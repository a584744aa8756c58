#!/usr/bin/env bash
# Makes a network like `pillar-large` on a GPU, through JAX. Run it again to resume.
#   1/3  it trains on the table that ships
#   2/3  it plays against itself: searches, labels and training on the GPU
#   3/3  it is taught every position in which it does not win when it moves first (experiments/large/solve.py)
# The network that ships was made by other commands (experiments/large/README.md). This recipe has run small only.
#
#   pipelines/large.sh           # about 40 minutes of an H100
#   pipelines/large.sh --smoke   # every step small, in minutes without a GPU
#   OUT=models/mine pipelines/large.sh
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

out=${OUT:-models/large}
training=(--steps 6000 --batch-size 4096 --set precision=bfloat16 --set eval_every=1000)
playing=(--minutes 20)
rounds=(--seconds 900)
case ${1:-} in
  '') ;;
  --smoke)
    out=${OUT:-models/large-smoke}
    small=(--set arch.features=4 --set arch.blocks=1 --set arch.hidden=8)
    training=(--steps 20 --batch-size 64 "${small[@]}")
    playing=(--minutes 0.1 --set device_lanes=16 --set batch_size=64 --set precision=float32 --set eval_boards=20)
    rounds=(--rounds 2 --most-stones 6 --eval-boards 20)
    ;;
  *) fail "$1: the only flag is --smoke" ;;
esac
set_up solver,jax
export KERAS_BACKEND=jax

say '1/3  training on the table that ships'
"$python" -m distill.train --arch pillar-large --data data/reference/labels-200 --validation-fraction 0.05 \
  --no-export --value-target blend --set value_weight=0.5 --set optimizer=muon --set ema=0.999 --lr 3e-3 \
  "${training[@]}" --out "$out/first"
say '2/3  self-play on the GPU'
"$python" -m distill.selfplay --preset minutes --config pipelines/reference/large.json --arch pillar-large \
  --init "$out/first" --lr 2e-3 "${playing[@]}" --out "$out/selfplay"
say '3/3  rounds towards a network that wins every game'
"$python" -m experiments.large.solve --network "$out/selfplay" "${rounds[@]}" --out "$out/rounds"
say 'grading the network without search'
"$python" -m distill.evaluate "$out/rounds/best.keras" --sets midgame heldout
