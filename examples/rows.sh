#!/usr/bin/env bash
# Trains and evaluates several methods with several seeds; called again, it goes on.
#   [SEEDS="1"] [JOBS=1] bash examples/rows.sh RECIPE DATA OUT METHOD[,METHOD...] [FLAG...]
# RECIPE is a folder of examples/ with train.sh and evaluate.sh, which take DATA; METHOD and more
# variables of the environment are its train.sh's, and so are the flags. A run is OUT/METHOD.SEED,
# what it prints is in train.out and evaluate.out there. JOBS runs go on at a time, with
# OMP_NUM_THREADS=1 threads each.
set -euo pipefail

if [[ $# -lt 4 ]]; then
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
recipe="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/$1" data="$2" out="$3"
IFS=, read -ra methods <<<"$4"
shift 4
if [[ ! -e $recipe/evaluate.sh ]]; then
    echo "$0: $recipe has no evaluate.sh: it is no recipe" >&2
    exit 2
fi
export recipe data out OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

row() { # METHOD SEED FLAG...
    local save="$out/$1.$2"
    export METHOD="$1" SEED="$2"
    shift 2
    mkdir -p "$save"
    bash "$recipe/train.sh" "$data" "$save" "$@" >"$save/train.out" 2>&1 &&
        bash "$recipe/evaluate.sh" "$data" "$save" >"$save/evaluate.out" 2>&1 ||
        { echo "$save failed: its train.out and evaluate.out say why" >&2; return 1; }
    echo "$save is done"
}
export -f row

for seed in ${SEEDS:-1}; do
    printf "%s $seed\n" "${methods[@]}"
done | xargs -P "${JOBS:-1}" -L 1 bash -c 'flags=("${@:1:$#-2}"); row "${@: -2}" "${flags[@]}"' row "$@"
