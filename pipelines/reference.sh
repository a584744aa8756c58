#!/usr/bin/env bash
# Rebuilds the networks that ship, but for pillar-large (pipelines/large.sh):
#   pillar         our own, from scratch: the `night` run with its recorded games and steps (6.5 hours on 2 cores of a Zen 1), then
#                  three rounds of games and training (3.5 hours on one core of a Zen 5)
#   cnn, transformer
#                  the published architectures, from scratch, on 20,000 games of the teacher (24 minutes on 2 cores of a
#                  Zen 5); the CNN then trains on 28,000 more games (about 8 hours in all)
#   cnn-strong, transformer-strong
#                  start from the `cnn` and `transformer` that ship, not from those rebuilt here, and train on the table
#                  that ships, labelled by PUCT searches (1.5 hours on one core of a Zen 5)
#
#   pipelines/reference.sh                    # all of them, into models/rebuilt; run it again to resume
#   pipelines/reference.sh cnn transformer    # only these two
#   OUT=models/mine pipelines/reference.sh    # into another folder
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

precision=${PRECISION:-bfloat16} # float32 on CPUs without bfloat16; the night and `lines` below train in float32
reference=${OUT:-models/rebuilt}
formats='savedmodel onnx onnx-int8'

[ $# -gt 0 ] || set -- pillar cnn transformer cnn-strong transformer-strong
for network; do # check the names before the setup
  case $network in
    pillar | cnn | transformer | cnn-strong | transformer-strong) ;;
    *) fail "$network: no network that ships; there are pillar, cnn, transformer, cnn-strong and transformer-strong" ;;
  esac
done
set_up solver

# Plays games with a network's PUCT search of 200 simulations. Arguments: network, output folder, flags of selfplay.
guided() {
  "$python" -m distill.selfplay --games-only --init "$1" --set shard_games=1000 "${search[@]}" --out "$2" "${@:3}"
}

search=(--set root=puct --simulations 200 --set exploration=1 --set discount=0.98 --set precision="$precision")

# Continues training `pillar`. Arguments: initial network, output folder, flags of train.
lines() {
  "$python" -m distill.train --arch pillar --init "$1" --out "$2" --validation-fraction 0.05 --no-export \
    --value-target blend --set value_weight=0.5 --set optimizer=muon "${@:3}"
}

pillar() {
  local night=$reference/night student=$reference/student second=$reference/student-2 loop=$reference/empty-board
  local games=$reference/games # not in data/: they depend on the networks rebuilt here
  local first_table=(data/reference/labels-200 "$games"/first-200 "$games"/wide2-200)
  local long=(--lr 2e-3 --steps 60000 --set count_weights=root --set ema=0.999 --set eval_every=4096)
  local wide=(--config pipelines/reference/wide.json)
  say 'pillar, 1/6: an unattended night: the teacher plays, then the network, which trains meanwhile'
  "$python" -m distill.selfplay --preset night --repeat models/long/night/_run.json --set precision=float32 \
    --out "$night"
  say '2/6  its PUCT search plays games from the empty board and from random openings'
  guided "$night" "$games"/first-200 --config pipelines/reference/first.json --games 12000 --seed 2111
  guided "$night" "$games"/wide2-200 --games 16000 --seed 2112 "${wide[@]}"
  say '3/6  it trains on these games and on the table that ships'
  lines "$night" "$student" --data "${first_table[@]}" "${long[@]}"
  say '4/6  the new network plays games from random openings and a self-play loop from the empty board'
  guided "$student" "$games"/wide3-200 --games 32000 --seed 2113 "${wide[@]}"
  "$python" -m distill.selfplay --init "$student" "${search[@]}" --config pipelines/reference/loop.json \
    --games 500 --iterations 24 --set gate=none --set optimizer=muon --lr 1e-3 \
    --set value_weight=0.5 --set replay.rows=150000 --set eval_boards=500 --out "$loop"
  say '5/6  it trains on all of these games'
  lines "$student" "$second" --data "${first_table[@]}" "$games"/wide3-200 "$loop"/iterations/*/games "${long[@]}"
  say "6/6  it trains on the loop's games alone; 0.75 of the earlier weights are kept (interpolation)"
  lines "$second" "$reference/pillar" --data "$loop"/iterations/*/games --lr 4e-4 --steps 4000 \
    --set count_weights=count --set ema=0.99 --set eval_every=1024 --set interpolate=0.75
  formats='savedmodel litert onnx litert-int8 onnx-int8' grade pillar uct:1000
}

# Trains a published architecture on 20,000 games of the teacher. Arguments: architecture, output folder, flags of train.
published() {
  local arch=$1 folder=$2
  shift 2
  "$python" -m distill.generate --games 20000 --out data/reference/games-20000
  "$python" -m distill.train --arch "$arch" --set precision="$precision" --set optimizer=muon --out "$folder" \
    --data data/reference/games-20000 "$@"
}

# Grades and exports a network. Arguments: network, then other players to grade and flags of evaluate.
grade() {
  "$python" -m distill.evaluate "$reference/$1" "${@:2}" --out "$reference/$1/evaluation"
  "$python" -m distill.export "$reference/$1" --formats $formats # words; last, because the model card shows the grades
}

cnn() {
  local first=$reference/cnn-20000
  say 'cnn, 1/3: the teacher plays 20,000 games, and the network trains on them'
  published cnn "$first" --steps 36000 --lr 4e-3 --no-export
  say '2/3  the teacher plays 28,000 more games with one vote a move: an hour of one core'
  "$python" -m distill.generate --votes 1 --seed 7 --games 28000 --shard-games 500 --out data/games-one-vote
  say '3/3  it continues training on all of them'
  published cnn "$reference/cnn" data/games-one-vote --init "$first" --validation-fraction 0.05 \
    --set target=blend --set arch.dropout=0 --set eval_every=2048 --steps 18000 --lr 2e-3
  grade cnn
}

transformer() {
  say 'transformer: the teacher plays 20,000 games, and the network trains on them'
  published transformer "$reference/transformer" --steps 40000 --lr 6e-3 --set arch.dropout=0
  grade transformer
}

# Continues training a network that ships, on the table that ships. Arguments: network, steps.
strong() {
  say "$1-strong: $1 continues training on labels of a PUCT search"
  "$python" -m distill.train --arch "$1" --init "models/reference/$1" --data data/reference/labels-200 \
    --validation-fraction 0.05 --set precision="$precision" --set optimizer=muon --set ema=0.999 \
    --set eval_every=4096 --set target=visits --steps "$2" --lr 3e-3 --out "$reference/$1-strong"
  grade "$1-strong" uct:1000
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
