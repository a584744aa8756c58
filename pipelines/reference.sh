#!/usr/bin/env bash
# The shipped networks, from nothing. `pillar`, our own: games of the teacher, a network that learns from them, three rounds
# of games of the latest network's own search and a network that learns from those, then twenty short rounds from the empty
# board; about six and a half hours on 2 cores. The published shapes: 20,000 games at the published settings, which ship,
# and a training each, the CNN's then with 28,000 games more; about six hours. Of these the first stage of the CNN ships too.
#
#   pipelines/reference.sh                    # all of them, in models/anew; started again, it goes on where it was
#   pipelines/reference.sh cnn transformer    # those alone
#   OUT=models/mine pipelines/reference.sh    # elsewhere
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

precision=${PRECISION:-bfloat16} # what ships was made in it; float32 for `pillar` on a processor without it
reference=${OUT:-models/anew}
formats=savedmodel,litert,onnx,litert-int8,onnx-int8

[ $# -gt 0 ] || set -- pillar cnn transformer
for arch; do # before anything is set up
  case $arch in
    pillar | cnn | transformer) ;;
    *) fail "$arch: no network that ships; there are pillar, cnn and transformer" ;;
  esac
done
set_up solver

# Games that a network's own search plays and labels: from a network, so many, with a seed, into a folder, further flags.
play() {
  local network=$1 games=$2 seed=$3 folder=$4
  shift 4
  "$python" -m distill.selfplay --games-only --init "$network" --games "$games" --root puct --simulations 50 \
    --exploration 1.0 --noise-fraction 0 --sampling-plies 16 --opening-moves 1 14 --precision "$precision" --lanes 512 \
    --seed "$seed" --out "$folder" "$@"
}

# A `pillar` with a value head, from folders of games.
learn() {
  "$python" -m distill.train --arch pillar --value-target blend --precision "$precision" "$@"
}

pillar() {
  say '1/12  the teacher plays: one search of 10,000 simulations a move, long random openings'
  "$python" -m distill.generate --simulations 10000 --votes 1 --opening-moves 1 14 --games 36000 --shard-games 500 \
    --seed 1 --out data/games-wide
  "$python" -m distill.generate --games 5000
  say '2/12  a first network learns from its games'
  learn --data data/games-wide data/games --epochs 10 --out models/teacher-column
  say '3/12  that network plays, with a search of 50 simulations a move'
  play models/teacher-column 40000 11 data/games-puct
  say '4/12  the second network learns from those games'
  learn --data data/games-puct --epochs 13 --out models/round1-column
  say '5/12  the second network plays'
  play models/round1-column 60000 21 data/games-puct2
  say '6/12  the third network learns from the games of both'
  learn --data data/games-puct data/games-puct2 --validation-fraction 0.05 --epochs 9 --out models/round2-column
  say '7/12  the third network plays: wide, from near the empty board, and deeper along its own best lines'
  play models/round2-column 60000 31 data/games-puct3
  play models/round2-column 10000 32 data/games-empty3 --simulations 100 --opening-moves 0 3
  play models/round2-column 10000 33 data/games-lines3 --simulations 200 --opening-moves 0 2 --sampling-plies 8
  say '8/12  the fourth network goes on from the third, with these games'
  learn --data data/games-puct3 data/games-empty3 data/games-lines3 --validation-fraction 0.05 --init models/round2-column \
    --value-weight 0.25 --optimizer muon --lr 3e-3 --steps 30000 --out models/round3-column --no-export
  say '9/12  the fourth network plays from the empty board, with noise: replies its predecessors never tried'
  play models/round3-column 6000 34 data/games-lines4 --simulations 200 --opening-moves 0 0 --sampling-plies 14 \
    --noise-fraction 0.25 --dirichlet-alpha 1.0
  say '10/12  a short training more with these, in which boards met often weigh more'
  learn --data data/games-puct3 data/games-empty3 data/games-lines3 data/games-lines4 --validation-fraction 0.05 \
    --init models/round3-column --value-weight 0.25 --count-weights root --optimizer muon --lr 1e-3 --steps 4000 \
    --out models/lines-column --no-export
  say '11/12  games from the empty board and training, twenty times: who begins learns to win'
  "$python" -m distill.selfplay --init models/lines-column --root puct --simulations 200 --exploration 1.0 \
    --noise-fraction 0.25 --dirichlet-alpha 1.0 --sampling-plies 14 --opening-moves 0 1 --games 500 --iterations 20 \
    --gate none --optimizer muon --lr 1e-3 --lr-drops 18:3e-4 --replay-rows 150000 --precision "$precision" \
    --judge-boards 500 --seed 4 --out models/lines-loop
  say '12/12  the network that ships goes on from there, with the wide games as well'
  learn --data data/games-puct3 data/games-empty3 $(printf 'models/lines-loop/iterations/%04d/games ' {9..20}) \
    --validation-fraction 0.05 --init models/lines-loop --value-weight 0.25 --count-weights root --optimizer muon \
    --lr 2e-3 --steps 12000 --out "$reference/pillar"
  "$python" -m distill.evaluate "$reference/pillar" "$reference/pillar@value" uct:1000 --no-latency \
    --out "$reference/pillar/evaluation"
  say 'the card again, now with the grades'
  "$python" -m distill.export "$reference/pillar" --formats "$formats"
}

# A training of a published shape on games of the teacher, 20,000 of which ship: shape, folder, flags of train.
published() {
  local arch=$1 folder=$2
  shift 2
  "$python" -m distill.generate --games 20000 --out data/reference/games-20000
  "$python" -m distill.train --arch "$arch" --precision "$precision" --optimizer muon --out "$folder" \
    --data data/reference/games-20000 "$@"
}

grade() {
  "$python" -m distill.evaluate "$reference/$1" --out "$reference/$1/evaluation"
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

for arch; do
  "$arch"
done
