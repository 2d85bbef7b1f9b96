#!/usr/bin/env bash
# Translates the CG-test with a run's chosen and last checkpoint and scores both.
#   [BEAM=5] bash examples/cognition/evaluate.sh DATA SAVE [FLAG...]
# For each of NAME = best, last it leaves SAVE/test.NAME.log (fairseq-generate), cter.NAME.json
# (compound translation error rate), bleu.NAME.json (detokenised Chinese) and, for
# models that have codes, codes.NAME.json (the words of each code).
set -euo pipefail
# shellcheck source=../recipe.sh
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

for name in best last; do
    log="$save/test.$name.log"
    generate "$name" test --beam "${BEAM:-5}" --max-len-a 1.2 --max-len-b 10 --max-tokens 4096 \
        --remove-bpe
    codes "$name"
    compgen-cter --log "$log" --compound "$data/cter/test.compound" \
        --lexicon "$data/cter/lexicon" --json-out "$save/cter.$name.json"
    compgen-score "$log" "${complete[@]}" --metric bleu --detokenize chinese --tokenize zh \
        --reference "$data/raw/test.zh" --json-out "$save/bleu.$name.json"
done
