#!/usr/bin/env bash
# REINFORCE, from nothing with the published network, and from a distilled one where `train` has left it:
#   ./pipelines/reinforce_mk4.sh          hours on two cores
#   ./pipelines/reinforce_mk4.sh small    minutes: shows that it runs and begins to learn
# Makes .venv where it is missing. Stopped at any point, it goes on where it was.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

distilled=models/pillar # what `python -m distill.train --arch pillar` makes
case ${1:-full} in
  full)
    suffix=''
    from_nothing=(--preset published) # half a million games
    from_distilled=(--steps 200)
    ;;
  small)
    suffix=-small
    from_nothing=(--preset published --steps 40 --eval-every 10 --final-games 1000)
    from_distilled=(--steps 20 --eval-every 10 --final-games 1000)
    ;;
  *) fail "no such size: $1 (nothing, or small)" ;;
esac

set_up solver # the environment that quickstart.sh makes
SECONDS=0

say '1/3  Mk4 plays itself, from nothing; its win rate is measured against random and punisher'
"$python" -m distill.reinforce "${from_nothing[@]}" --out "models/mk4-reinforce$suffix"
players=("models/mk4-reinforce$suffix")
if [ -e "$distilled/best.keras" ]; then
  say "2/3  the same from $distilled, with smaller steps and bonus: it has much to lose"
  "$python" -m distill.reinforce --init "$distilled" --lr 1e-4 1e-5 --entropy 0.01 0.01 \
    "${from_distilled[@]}" --out "models/pillar-reinforce$suffix"
  players+=("models/pillar-reinforce$suffix" "$distilled")
else
  say "2/3  no $distilled, so nothing to begin from; python -m distill.train --arch pillar makes it"
fi
say '3/3  the likeliest columns of the networks against rivals and each other'
"$python" -m distill.arena "${players[@]}" random punisher
say "done in $((SECONDS / 60)) min $((SECONDS % 60)) s; curves in models/*-reinforce$suffix/curves.png"
