#!/usr/bin/env bash
# Trains one model on a prepared SCAN folder; run again, it resumes.
#   [METHOD=sal] [SEED=1] [SIZE=tiny|paper] [UPDATES=N] bash examples/scan/train.sh DATA SAVE [FLAG...]
# DATA comes from prepare/scan.sh; SAVE is the folder of the checkpoints and the log; more flags go
# to fairseq-train. METHOD and SIZE are listed in settings.sh.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if [[ $# -lt 2 ]]; then
    sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
data="$1" save="$2"
shift 2
# shellcheck source=settings.sh
source "$here/settings.sh"
device=(--cpu)
if python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then device=(); fi

mkdir -p "$save"
fairseq-train "$data" "${device[@]}" \
    --user-dir "$here/../../compgen_fairseq" --task compgen_translation \
    --arch sq_transformer_scan --criterion structural_cross_entropy \
    --optimizer adam --adam-betas '(0.9,0.98)' --weight-decay 0.1 --clip-norm 0 \
    "${SIZE_FLAGS[@]}" "${METHOD_FLAGS[@]}" --seed "${SEED:=1}" --max-update "$UPDATES" \
    --eval-exact-match --best-checkpoint-metric exact_match --maximize-best-checkpoint-metric \
    --max-tokens-valid 8192 --keep-interval-updates 1 --no-epoch-checkpoints --save-dir "$save" \
    --no-progress-bar --log-format simple --log-interval 100 "$@" 2>&1 | tee -a "$save/train.log"
