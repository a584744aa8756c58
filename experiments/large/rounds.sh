#!/bin/sh
# Rounds towards a network that wins against every reply: enumerate, search what is not won, learn it, again.
#
#     sh experiments/large/rounds.sh SHAPE NETWORK OUT ROUNDS BOARDS.npz...
#
# Needs graded.npz of boards.py in the working directory. A round whose OUT/N/best.keras is there is not repeated.
set -eu
shape=$1 network=$2 out=$3 rounds=$4
shift 4
export KERAS_BACKEND=jax JAX_COMPILATION_CACHE_DIR="${JAX_COMPILATION_CACHE_DIR:-/tmp/jax-cache}"
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0
python=${PYTHON:-python3}
searched=
round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    here=$out/$round
    mkdir -p "$here"
    if [ ! -e "$here/best.keras" ]; then
        [ -e "$here/not_won.npz" ] || $python -m experiments.large.tree --network "$network" --out "$here"
        [ -e "$here/searched-0.npz" ] || $python -m experiments.large.label --network "$network" --kind keys \
            --keys "$here/not_won.npz" --simulations "${SIMULATIONS:-600}" --minutes "${LABEL_MINUTES:-0.5}" \
            --seed "$round" --exclude graded.npz --out "$here/searched.npz"
        $python -m experiments.large.train --shape "$shape" --init "$network" --graded graded.npz --data "$@" \
            --extra $searched "$here/searched-0.npz" --extra-share 0.2 --tree "$here" --tree-share 0.3 \
            --lr "${LR:-0.0006}" --steps "${STEPS:-3000}" --seed "$round" --out "$here"
        rm -f "$here"/keys-*.npy "$here"/moves-*.npy
    fi
    searched="$searched $here/searched-0.npz"
    network=$here/best.keras
done
