#!/usr/bin/env bash
# The shipped column network, from nothing: games of the teacher, a network that learns from them, then two rounds of games
# of the latest network's own search and a network that learns from those. About four hours on 2 cores; started again, it
# goes on where it was.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

precision=bfloat16 # float32 on a processor without it: twice the time
out=models/reference/column

set_up solver

# Games that a network's own search plays and labels: from a network, so many, with a seed, into a folder.
play() {
  "$python" -m distill.selfplay --games-only --init "$1" --games "$2" --root puct --simulations 50 --exploration 1.0 \
    --noise-fraction 0 --sampling-plies 16 --opening-moves 1 14 --precision "$precision" --lanes 512 --seed "$3" --out "$4"
}

# A column network with a value head, from folders of games.
learn() {
  "$python" -m distill.train --arch column --value-target blend --precision "$precision" "$@"
}

say '1/6  the teacher plays: one search of 10,000 simulations a move, long random openings'
"$python" -m distill.generate --simulations 10000 --votes 1 --opening-moves 1 14 --games 36000 --shard-games 500 \
  --seed 1 --out data/games-wide
"$python" -m distill.generate --games 5000
say '2/6  a first network learns from its games'
learn --data data/games-wide data/games --epochs 10 --out models/teacher-column
say '3/6  that network plays, with a search of 50 simulations a move'
play models/teacher-column 40000 11 data/games-puct
say '4/6  the second network learns from those games'
learn --data data/games-puct --epochs 13 --out models/round1-column
say '5/6  the second network plays'
play models/round1-column 60000 21 data/games-puct2
say '6/6  the network that ships learns from the games of both'
learn --data data/games-puct data/games-puct2 --validation-fraction 0.05 --epochs 9 --out "$out"
"$python" -m distill.evaluate "$out" "$out@value" uct:100 uct:1000 teacher:10000 uct:100000 --out "$out/evaluation"
say 'the card again, now with the grades'
"$python" -m distill.export "$out"
