#!/usr/bin/env bash
# Pre-trains CAT or the plain encoder, BERT, on a prepared text; run again, it resumes.
#   [METHOD=cat] [SEED=1] [SIZE=tiny|paper] [UPDATES=N] [LAUNCH=...] \
#       bash examples/cat/train.sh DATA SAVE [FLAG...]
# METHOD is cat, plain, or one of no-guided-decomposition, no-semantics-composition,
# no-reconstruction, no-sufficiency, no-nuance. DATA comes from prepare/pretraining.sh; SAVE is the
# folder of the checkpoints and the log; more flags go to fairseq-train. The other variables of the
# environment are explained in examples/recipe.sh.
set -euo pipefail
# shellcheck source=../recipe.sh
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

best=ppl_mix
case "${METHOD:=cat}" in
    cat) METHOD_FLAGS=() ;;
    plain) METHOD_FLAGS=(--composition none) best=ppl_cont ;;
    no-guided-decomposition | no-reconstruction | no-nuance)
        METHOD_FLAGS=(--ablation "${METHOD#no-}")
        ;;
    no-semantics-composition | no-sufficiency) # nothing reads the last layer's mixed states
        METHOD_FLAGS=(--ablation "${METHOD#no-}" --ddp-backend legacy_ddp) best=ppl_cont
        ;;
    *)
        refuse "METHOD=$METHOD is none of cat, plain, no-guided-decomposition," \
            "no-semantics-composition, no-reconstruction, no-sufficiency, no-nuance"
        ;;
esac

if [[ $SIZE == paper ]]; then # appendix A.1 and equations 4 and 5; batches and schedule are BERT's
    : "${UPDATES:=1000000}"
    if [[ $METHOD != plain ]]; then
        METHOD_FLAGS+=(--guidance weights --reconstruction-beta 0.1 --sparsity 1 --word-average)
    fi
    SIZE_FLAGS=(
        --arch cat_base --lr 1e-4 --warmup-updates 10000 --batch-size 256
        --validate-interval-updates 10000 --save-interval-updates 10000
    )
else # 3 layers, 128 wide
    : "${UPDATES:=800}"
    SIZE_FLAGS=(
        --arch cat_tiny --lr 1e-3 --warmup-updates 100 --batch-size 32
        --validate-interval-updates 200 --save-interval-updates 200
    )
fi

train --task cat_pretraining --criterion cat_pretraining \
    --optimizer adam --adam-betas '(0.9,0.999)' --weight-decay 0.01 --clip-norm 1.0 \
    --lr-scheduler polynomial_decay --total-num-update "$UPDATES" \
    --best-checkpoint-metric "$best" --validate-interval 1000000 \
    "${SIZE_FLAGS[@]}" "${METHOD_FLAGS[@]}"
