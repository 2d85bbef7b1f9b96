#!/usr/bin/env bash
# Decodes the test set with a run's chosen and last checkpoint and scores both.
#   [BEAM=1] bash examples/scan/evaluate.sh DATA SAVE [FLAG...]
# For each of NAME = best, last it leaves SAVE/test.NAME.log (fairseq-generate), test.NAME.json
# (exact match) and, for models that have codes, codes.NAME.json (the words of each code).
set -euo pipefail
# shellcheck source=../recipe.sh
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

for name in best last; do
    generate "$name" test --beam "${BEAM:-1}" --max-tokens 8192 --scoring exact_match
    codes "$name"
    compgen-score "$save/test.$name.log" "${complete[@]}" --json-out "$save/test.$name.json"
done
