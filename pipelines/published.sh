#!/usr/bin/env bash
# Runs the UT Project as its article describes it (docs/sources.md): the teacher plays 20,000 games, the CNN and the
# Transformer train on its votes with Adam, a plateau schedule and early stopping, 85 % of the games train and 15 %
# validate. The report stands beside the article, row by row. Creates .venv if it is missing. Run it again to resume.
#
#   pipelines/published.sh                     # Dirichlet noise on the moves; 5 hours on two processors
#   NOISE_AT=label pipelines/published.sh      # noise in the searches that label, the other reading of the article
#   EXPLORATION=2.83 pipelines/published.sh    # UCB1's constant √2 for results in [0, 1]; the default is 1 for [-1, 1]
#   pipelines/published.sh --games 200         # minutes
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

games=20000
case $#:${1:-} in
  0:) ;;
  2:--games) games=$2 ;;
  *) fail "the only argument is --games N, not '$*'" ;;
esac
noise=${NOISE_AT:-move}
run=$noise${EXPLORATION:+-$EXPLORATION}-$games
data=data/published/$run
models=models/published/$run
set_up solver
SECONDS=0

say '20,000 games, the CNN and the Transformer took two processors 38, 73 and 204 minutes beside other work'
say "1/4  the teacher plays $games games, with noise on the $noise"
"$python" -m distill.generate \
  --games "$games" --noise-at "$noise" --set search.exploration="${EXPLORATION:-1}" --out "$data"
step=2
for arch in cnn transformer; do
  say "$step/4  the $arch trains on them with the published recipe"
  "$python" -m distill.train --arch "$arch" --preset published --data "$data" --out "$models/$arch"
  step=$((step + 1))
done
say '4/4  the report beside the article'
"$python" -m experiments.published "$data" "$models/cnn" "$models/transformer" > "$models/report.part"
mv "$models/report.part" "$models/report.md"
cat "$models/report.md"
say "done in $((SECONDS / 60)) min $((SECONDS % 60)) s; the table is in $models/report.md"
