#!/usr/bin/env bash
# Decodes the test set with one model and scores it.
#   [CHECKPOINT=checkpoint_last.pt] [BEAM=1] bash examples/scan/evaluate.sh DATA SAVE
# Leaves SAVE/test.log (fairseq-generate), SAVE/test.json (exact match) and SAVE/codes.json (the
# words of each code, for models that have codes).
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if [[ $# -ne 2 ]]; then
    sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
data="$1" save="$2" checkpoint="$2/${CHECKPOINT:-checkpoint_last.pt}"
device=(--cpu)
if python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then device=(); fi

fairseq-generate "$data" "${device[@]}" --user-dir "$here/../../compgen_fairseq" \
    --path "$checkpoint" --gen-subset test --beam "${BEAM:-1}" --max-tokens 8192 \
    --scoring exact_match >"$save/test.log.partial" 2>"$save/generate.err" ||
    { tail -n 5 "$save/generate.err" >&2; exit 1; }
mv "$save/test.log.partial" "$save/test.log"
compgen-score "$save/test.log"
compgen-score "$save/test.log" --json >"$save/test.json"
if ! compgen-codes "$checkpoint" "$data" --json >"$save/codes.json" 2>"$save/codes.err"; then
    grep -q "has no codes" "$save/codes.err" || { cat "$save/codes.err" >&2; exit 1; }
    rm "$save/codes.json"
fi
rm "$save/codes.err"
