#!/usr/bin/env bash
# The networks that ship: three from nothing, two from those. `pillar`, our own: one run without a hand, by the plan of
# the run that ships, about six and a half hours on 2 cores of a Zen 1. The published shapes: 20,000 games at the
# published settings, which ship, and a training each, the CNN's then with 28,000 games more; about six hours. Of these
# the first stage of the CNN ships too. `cnn-strong` and `transformer-strong` begin with `cnn` and `transformer` as they
# ship, not as made here, and learn from a table that ships, labelled by searches that a network guides; about an hour
# and a half of one core of a Zen 5.
#
#   pipelines/reference.sh                    # all of them, in models/anew; started again, it goes on where it was
#   pipelines/reference.sh cnn transformer    # those alone
#   OUT=models/mine pipelines/reference.sh    # elsewhere
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

precision=${PRECISION:-bfloat16} # what the published shapes were made in; `pillar` was made in float32
reference=${OUT:-models/anew}
formats=savedmodel,litert,onnx,litert-int8,onnx-int8

[ $# -gt 0 ] || set -- pillar cnn transformer cnn-strong transformer-strong
for network; do # before anything is set up
  case $network in
    pillar | cnn | transformer | cnn-strong | transformer-strong) ;;
    *) fail "$network: no network that ships; there are pillar, cnn, transformer, cnn-strong and transformer-strong" ;;
  esac
done
set_up solver

pillar() {
  say 'pillar, 1/2: the teacher plays, then the network, which learns meanwhile; the same weights on the same kind of processor'
  "$python" -m distill.selfplay --preset night --plan models/reference/pillar/plan.json --precision float32 \
    --out "$reference/pillar"
  say '2/2  every move of the network against perfect play, and the files for other programs'
  "$python" benchmarks/time_to_strength.py "$reference/pillar" --plot "$reference/pillar/time-to-strength.png"
  grade pillar "$reference/pillar@value" uct:1000 --no-latency
}

# A training of a published shape on games of the teacher, 20,000 of which ship: shape, folder, flags of train.
published() {
  local arch=$1 folder=$2
  shift 2
  "$python" -m distill.generate --games 20000 --out data/reference/games-20000
  "$python" -m distill.train --arch "$arch" --precision "$precision" --optimizer muon --out "$folder" \
    --data data/reference/games-20000 "$@"
}

grade() { # a network; players to grade beside it, flags of evaluate
  "$python" -m distill.evaluate "$reference/$1" "${@:2}" --out "$reference/$1/evaluation"
  "$python" -m distill.export "$reference/$1" --formats "$formats" # with the grades on the card
}

cnn() {
  local first=$reference/cnn-20000
  say 'cnn, 1/3: it learns from 20,000 games of the teacher'
  published cnn "$first" --steps 36000 --lr 4e-3 --no-export
  say '2/3  28,000 games more, of one search a move in place of three: an hour of one core'
  "$python" -m distill.generate --votes 1 --seed 7 --games 28000 --shard-games 500 --out data/games-one-vote
  say '3/3  it goes on with all of them'
  published cnn "$reference/cnn" data/games-one-vote --init "$first" --validation-fraction 0.05 --target blend \
    --dropout 0 --steps 18000 --lr 2e-3 --measure-every 524288
  grade cnn
}

transformer() {
  say 'transformer: it learns from 20,000 games of the teacher'
  published transformer "$reference/transformer" --steps 40000 --lr 6e-3 --dropout 0
  grade transformer
}

# A published shape, as it ships, goes on with the table: shape, steps.
strong() {
  say "$1-strong: $1, as it ships, learns from labels of a network's search"
  "$python" -m distill.train --arch "$1" --init "models/reference/$1" --data data/reference/labels-200 \
    --validation-fraction 0.05 --measure-every 1048576 --precision "$precision" --optimizer muon --average 0.999 \
    --target visits --steps "$2" --lr 3e-3 --out "$reference/$1-strong"
  grade "$1-strong" uct:1000 --no-latency
}

cnn-strong() {
  strong cnn 40000
}

transformer-strong() {
  strong transformer 20000
}

for network; do
  "$network"
done
