#!/usr/bin/env bash
# The networks that ship: three from nothing, two from those. `pillar`, our own: a night by the plan of the one that it
# began with, about six and a half hours on 2 cores of a Zen 1, then games and training three times, about three and a
# half hours of one core of a Zen 5. The published shapes: 20,000 games at the published settings, which ship, and a
# training each, the CNN's then with 28,000 games more; about six hours. Of these the first stage of the CNN ships too.
# `cnn-strong` and `transformer-strong` begin with `cnn` and `transformer` as they ship, not as made here, and learn
# from a table that ships, labelled by searches that a network guides; about an hour and a half of one core of a Zen 5.
#
#   pipelines/reference.sh                    # all of them, in models/anew; started again, it goes on where it was
#   pipelines/reference.sh cnn transformer    # those alone
#   OUT=models/mine pipelines/reference.sh    # elsewhere
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

precision=${PRECISION:-bfloat16} # of all but the long trainings of `pillar`; float32 where a processor has no bfloat16
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

# Games of a network's search of 200 simulations: the network, the folder, flags of selfplay.
guided() {
  "$python" -m distill.selfplay --games-only --init "$1" --shard-games 1000 "${search[@]}" --out "$2" "${@:3}"
}

search=(--root puct --simulations 200 --exploration 1 --discount 0.98 --precision "$precision")

# `pillar-lines` goes on: where it begins, folder, flags of train.
lines() {
  "$python" -m distill.train --arch pillar-lines --init "$1" --out "$2" --validation-fraction 0.05 --no-export \
    --value-target blend --value-weight 0.5 --optimizer muon "${@:3}"
}

pillar() {
  local night=$reference/night student=$reference/student second=$reference/student-2 loop=$reference/empty-board
  local games=$reference/games # they depend on the networks
  local first_table=(data/reference/labels-200 "$games"/first-200 "$games"/wide2-200)
  local long=(--count-weights root --lr 2e-3 --ema 0.999 --steps 60000 --eval-every 1048576)
  local wide=(--noise-fraction 0 --opening-moves 0 20 0 28 --sampling-plies 16)
  say 'pillar, 1/6: a night, without a hand: the teacher plays, then the network, which learns meanwhile'
  "$python" -m distill.selfplay --preset night --plan models/long/night/plan.json --precision float32 --out "$night"
  say '2/6  its search of 200 simulations plays, from the empty board and from wide openings'
  guided "$night" "$games"/first-200 --games 12000 --seed 2111 --dirichlet-alpha 1 --opening-moves 0 1 0 2 --sampling-plies 14
  guided "$night" "$games"/wide2-200 --games 16000 --seed 2112 "${wide[@]}"
  say '3/6  it learns from these games and the table that ships'
  lines "$night" "$student" --data "${first_table[@]}" "${long[@]}"
  say '4/6  the same search, guided by that: wide openings, and a loop from the empty board'
  guided "$student" "$games"/wide3-200 --games 32000 --seed 2113 "${wide[@]}"
  "$python" -m distill.selfplay --init "$student" "${search[@]}" --dirichlet-alpha 1 --opening-moves 0 1 \
    --sampling-plies 14 --games 500 --iterations 24 --gate none --optimizer muon --lr 1e-3 --lr-drops 22:3e-4 \
    --value-weight 0.5 --replay-rows 150000 --eval-boards 500 --out "$loop"
  say '5/6  it learns from all of them'
  lines "$student" "$second" --data "${first_table[@]}" "$games"/wide3-200 "$loop"/iterations/*/games "${long[@]}"
  say "6/6  last from the loop's games alone, and three quarters of what it was are kept"
  lines "$second" "$reference/pillar" --data "$loop"/iterations/*/games --count-weights count --lr 4e-4 --ema 0.99 \
    --steps 4000 --eval-every 262144 --interpolate 0.75
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
    --dropout 0 --steps 18000 --lr 2e-3 --eval-every 524288
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
    --validation-fraction 0.05 --eval-every 1048576 --precision "$precision" --optimizer muon --ema 0.999 \
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
