#!/usr/bin/env bash
# The shipped column network, from nothing: games of the teacher, a network that learns from them, games of that network's
# own search, and the network that learns from those. About two hours on 2 cores; started again, it goes on where it was.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

precision=bfloat16 # float32 on a processor without it: twice the time
out=models/reference/column

set_up solver

say '1/4  the teacher plays: one search of 10,000 simulations a move, long random openings'
"$python" -m distill.generate --simulations 10000 --votes 1 --opening-moves 1 14 --games 36000 --shard-games 500 \
  --seed 1 --out data/games-wide
"$python" -m distill.generate --games 5000
say '2/4  a network with a value head learns from its games'
"$python" -m distill.train --arch column --data data/games-wide data/games --value-target blend \
  --precision "$precision" --epochs 10 --out models/teacher-column
say '3/4  that network plays, with a search of 50 simulations a move'
"$python" -m distill.selfplay --games-only --init models/teacher-column --games 40000 --root puct --simulations 50 \
  --exploration 1.0 --noise-fraction 0 --sampling-plies 16 --opening-moves 1 14 --precision "$precision" --lanes 512 \
  --seed 11 --out data/games-puct
say '4/4  the network that ships learns from those games'
"$python" -m distill.train --arch column --data data/games-puct --value-target blend \
  --precision "$precision" --epochs 13 --out "$out"
"$python" -m distill.evaluate "$out" "$out@value" uct:100 uct:1000 teacher:10000 --out "$out/evaluation"
say 'the card again, now with the grades'
"$python" -m distill.export "$out"
