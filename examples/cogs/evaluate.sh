#!/usr/bin/env bash
# Decodes the generalization set with a run's chosen and last checkpoint and scores both.
#   [BEAM=1] bash examples/cogs/evaluate.sh DATA SAVE [FLAG...]
# For each of NAME = best, last it leaves SAVE/test.NAME.log (fairseq-generate), test.NAME.json
# (exact match), cogs.NAME.json (per generalization case) and, for models that have codes,
# codes.NAME.json (the words of each code).
set -euo pipefail
# shellcheck source=../recipe.sh
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

for name in best last; do
    log="$save/test.$name.log"
    generate "$name" test --beam "${BEAM:-1}" --max-len-a 0 --max-len-b 500 --max-tokens 8192 \
        --scoring exact_match
    codes "$name"
    compgen-score "$log" "${complete[@]}" --json-out "$save/test.$name.json"
    compgen-score "$log" "${complete[@]}" --metric cogs --cases "$data/cases/test.case" \
        --json-out "$save/cogs.$name.json"
done
