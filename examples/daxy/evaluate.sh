#!/usr/bin/env bash
# Translates both test sets with a run's chosen and last checkpoint and scores them.
#   [BEAM=5] bash examples/daxy/evaluate.sh DATA SAVE [FLAG...]
# For each of NAME = best, last it leaves SAVE/test.NAME.log (fairseq-generate on the 8 sentences
# with "daxy") and test.NAME.json (exact match), test1.NAME.log (on the larger test set) and
# bleu.NAME.json.
set -euo pipefail
# shellcheck source=../recipe.sh
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

search=(--beam "${BEAM:-5}" --max-len-a 1.2 --max-len-b 10 --batch-size 128)
for name in best last; do
    generate "$name" test "${search[@]}" --scoring exact_match
    echo "checkpoint_$name.pt"
    grep '^[TH]-' "$save/test.$name.log"
    compgen-score "$save/test.$name.log" "${complete[@]}" --json-out "$save/test.$name.json"

    generate "$name" test1 "${search[@]}"
    log="$save/test1.$name.log"
    compgen-score "$log" "${complete[@]}" --metric bleu --tokenize none \
        --reference "$data/raw/test1.fr" --json-out "$save/bleu.$name.json"
done
