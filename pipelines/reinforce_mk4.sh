#!/usr/bin/env bash
# REINFORCE with the two networks of Connect-Zero from scratch, three seeds each, and from a distilled network if `train`
# has made one:
#   pipelines/reinforce_mk4.sh          # about 7 hours of one core of a Zen 4
#   pipelines/reinforce_mk4.sh small    # minutes: shows that it runs and starts to learn
# Creates .venv if it is missing. Run it again to resume.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

distilled=models/pillar # written by: python -m distill.train --arch pillar
case ${1:-full} in
  full)
    suffix=''
    seeds='0 1 2'
    from_scratch=(--eval-every 400 --final-games 4000)
    from_distilled=(--steps 200)
    ;;
  small)
    suffix=-small
    seeds=0
    few_steps=40
    from_scratch=(--eval-every 10 --final-games 1000)
    from_distilled=(--steps 20 --eval-every 10 --final-games 1000)
    ;;
  *) fail "no such size: $1 (nothing, or small)" ;;
esac

set_up solver
SECONDS=0

players=()
for network in dense mk4; do
  case $network in
    dense)
      recipe=(--arch experiments.dense:build)
      steps=20000 # a million games
      ;;
    mk4) # as Connect-Zero's code has it
      recipe=(--arch mk4 --baseline value --lr 1e-4 --entropy 0.05 0.05)
      steps=6000
      ;;
  esac
  for seed in $seeds; do
    say "1/3  $network, seed $seed, learns by self-play from scratch; its games won against random and punisher are recorded"
    "$python" -m experiments.reinforce --preset published "${recipe[@]}" --steps "${few_steps:-$steps}" \
      "${from_scratch[@]}" --seed "$seed" --out "models/$network-reinforce-$seed$suffix"
    players+=("models/$network-reinforce-$seed$suffix")
  done
done
if [ -e "$distilled/best.keras" ]; then
  say "2/3  the same from $distilled, with a smaller learning rate and entropy bonus to keep its strength"
  "$python" -m experiments.reinforce --init "$distilled" --lr 1e-4 1e-5 --entropy 0.01 0.01 \
    "${from_distilled[@]}" --out "models/pillar-reinforce$suffix"
  players+=("models/pillar-reinforce$suffix" "$distilled")
else
  say "2/3  skipped: no $distilled; train it with: python -m distill.train --arch pillar"
fi
say '3/3  arena: the networks without search, random and punisher'
"$python" -m distill.arena "${players[@]}" random punisher
say "done in $((SECONDS / 60)) min $((SECONDS % 60)) s; curves in models/*-reinforce*$suffix/curves.png"
