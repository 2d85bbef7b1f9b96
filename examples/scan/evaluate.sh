#!/usr/bin/env bash
# Decodes the test set with a run's chosen and last checkpoint and scores both.
#   [BEAM=1] bash examples/scan/evaluate.sh DATA SAVE
# For each of NAME = best, last it leaves SAVE/test.NAME.log (fairseq-generate), test.NAME.json
# (exact match) and, for models that have codes, codes.NAME.json (the words of each code).
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if [[ $# -ne 2 ]]; then
    sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
data="$1" save="$2"
device=(--cpu)
if python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then device=(); fi

for name in best last; do
    checkpoint="$save/checkpoint_$name.pt" test="$save/test.$name"
    fairseq-generate "$data" "${device[@]}" --user-dir "$here/../../compgen_fairseq" \
        --path "$checkpoint" --gen-subset test --beam "${BEAM:-1}" --max-tokens 8192 \
        --scoring exact_match >"$test.log.partial" 2>"$save/generate.err" ||
        { tail -n 5 "$save/generate.err" >&2; exit 1; }
    mv "$test.log.partial" "$test.log"
    echo "checkpoint_$name.pt"
    compgen-score "$test.log" 2>/dev/null || { compgen-score "$test.log"; exit 1; }
    compgen-score "$test.log" --json >"$test.json.partial" 2>/dev/null
    codes="$save/codes.$name.json"
    if ! compgen-codes "$checkpoint" "$data" --json >"$codes.partial" 2>"$save/codes.err"; then
        grep -q "has no codes" "$save/codes.err" || { cat "$save/codes.err" >&2; exit 1; }
        rm "$codes.partial"
    else
        mv "$codes.partial" "$codes"
    fi
    rm "$save/codes.err" "$save/generate.err"
    mv "$test.json.partial" "$test.json"
done
