#!/usr/bin/env bash
# SQ-Transformer (SAL) beside the plain Transformer of the same size, updates, dropout and seed on
# SCAN AddJump 2x: data from the grammar, training, decoding of the whole test set, a table.
#   [SEED=1] [UPDATES=9000] [DATA_DIR=data-bin] [RUNS_DIR=runs] bash examples/scan/quickstart.sh
# What is there already is used again; an interrupted training resumes.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
# shellcheck source=../whole.sh
source "$here/../whole.sh"
whole 0 SEED
whole 1 UPDATES
seed="${SEED:-1}" updates="${UPDATES:-9000}" runs="${RUNS_DIR:-$root/runs}"
table="scan-addjump-2x/quickstart-$updates"

mkdir -p "$runs"
cat >"$runs/quickstart.txt" <<END
data scan-addjump-2x scan scan.sh addjump --augment 2
run 1 $table sal-brown,plain $seed UPDATES=$updates
END
python "$root/examples/tables.py" "$runs" "" --file "$runs/quickstart.txt" \
    --data "${DATA_DIR:-$root/data-bin}" --jobs 2
compgen-report "$runs/$table/sal-brown.$seed" "$runs/$table/plain.$seed"
