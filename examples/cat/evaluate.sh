#!/usr/bin/env bash
# Scores a fine-tuned CAT model: its chosen and its last checkpoint.
#   [BIRD=FOLDER] bash examples/cat/evaluate.sh DATA SAVE
# For each of NAME = best, last it leaves test.NAME.json and test.NAME.tsv (label and prediction of
# each sentence) in SAVE; where DATA has a second test set, other.NAME.json and .tsv, of which only
# the non-paraphrases count in PAWS; with BIRD, a folder of prepare/bird.sh, bird.NAME.json and
# abba.NAME.json.
set -euo pipefail
# shellcheck source=../recipe.sh
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

if [[ ${#more[@]} -gt 0 ]]; then usage; fi
other=()
if grep -q '"command": "prepare/paws.sh' "$data/PREPARED.json"; then other=(--label 0); fi
for name in best last; do
    checkpoint="$save/checkpoint_$name.pt"
    if [[ ! -e $checkpoint ]]; then
        echo "$0: there is no $checkpoint; finetune.sh comes first" >&2
        exit 1
    fi
    echo "checkpoint_$name.pt"
    compgen-predict "$checkpoint" "$data" "${device[@]}" --out "$save/test.$name.tsv" \
        --json-out "$save/test.$name.json"
    if [[ -e $data/input0/test1.bin ]]; then
        compgen-predict "$checkpoint" "$data" "${device[@]}" --subset test1 "${other[@]}" \
            --out "$save/other.$name.tsv" --json-out "$save/other.$name.json"
    fi
    if [[ -n ${BIRD:-} ]]; then
        compgen-similarity "$checkpoint" "$BIRD" "${device[@]}" --json-out "$save/bird.$name.json"
        compgen-similarity "$checkpoint" "$BIRD" "${device[@]}" --subset test1 \
            --json-out "$save/abba.$name.json"
    fi
done
