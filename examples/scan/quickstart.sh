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
export SEED="${SEED:-1}" UPDATES="${UPDATES:-9000}" OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
data="${DATA_DIR:-$root/data-bin}/scan-addjump-2x"
runs="${RUNS_DIR:-$root/runs}/quickstart-seed$SEED-updates$UPDATES"
methods=(sal-brown plain)

bash "$root/prepare/scan.sh" addjump "$data" --augment 2

train() {
    local method="$1" save="$runs/$1"
    if [[ -e "$save/test.last.json" ]]; then
        echo "quickstart: $method is trained and scored already in $save"
        return
    fi
    mkdir -p "$save"
    echo "quickstart: training $method, log in $save/train.log"
    METHOD="$method" bash "$here/train.sh" "$data" "$save" >"$save/train.out" 2>&1 ||
        { echo "quickstart: training $method failed:" >&2; tail -n 5 "$save/train.out" >&2; return 1; }
    bash "$here/evaluate.sh" "$data" "$save" >"$save/evaluate.out" ||
        { echo "quickstart: evaluating $method failed" >&2; return 1; }
}

# One process per model, one thread each; the estimate comes from the slower one's log.
pids=()
for method in "${methods[@]}"; do
    train "$method" &
    pids+=($!)
done
python "$here/progress.py" "$UPDATES" "${methods[@]/#/$runs/}" &
progress=$!
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
kill "$progress" 2>/dev/null || true
wait "$progress" 2>/dev/null || true
((status == 0)) || exit 1
compgen-report "${methods[@]/#/$runs/}"
