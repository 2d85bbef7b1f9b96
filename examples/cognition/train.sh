#!/usr/bin/env bash
# Trains one model on a prepared CoGnition folder; run again, it resumes.
#   [METHOD=sq] [SEED=1] [SIZE=tiny|paper] [UPDATES=N] [LAUNCH=...] \
#       bash examples/cognition/train.sh DATA SAVE [FLAG...]
# DATA comes from prepare/cognition.sh; SAVE is the folder of the checkpoints and the log; more
# flags go to fairseq-train. The environment's variables are explained in examples/recipe.sh;
# SELECT=cter chooses the checkpoint by instance CTER instead of BLEU (prepare with --valid cg20).
# Besides the variants of SQ-Transformer METHOD can be proto (Proto-Transformer, prototypes after
# STAGE1_EPOCHS=8 epochs), proto-target-side, proto-source-and-target, proto-random, proto-two-pass
# (with --prototype-table TABLE, from compgen-prototypes extract), cat (CAT's encoder) or transformer
# (fairseq's own).
set -euo pipefail
# shellcheck source=../recipe.sh
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

OTHER_METHODS="proto, proto-target-side, proto-source-and-target, proto-random, proto-two-pass, \
cat, transformer"
if [[ $SIZE == paper ]]; then # the paper's appendix B.2 and its authors' settings
    : "${UPDATES:=1000000}"
    size=()
    sq_size=()
    transformer_size=()
    cat_size=(--encoder-attention-heads 4 --decoder-attention-heads 4) # as transformer has
    schedule=(
        --lr 5e-4 --lr-scheduler inverse_sqrt --warmup-updates 4000 --max-tokens 4096
        --validate-interval-updates 5000 --save-interval-updates 5000
    )
else # 2 + 2 layers, 128 wide, for the low-resource setting
    : "${UPDATES:=2000}"
    size=(
        --encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 128
        --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256
        --encoder-attention-heads 4 --decoder-attention-heads 4
    )
    sq_size=(--encoder-predictor-layers 1 --decoder-predictor-layers 1)
    transformer_size=(--decoder-embed-dim 128)
    cat_size=(--codes 256)
    schedule=(
        --lr 3e-3 --lr-scheduler polynomial_decay --total-num-update "$UPDATES"
        --warmup-updates 300 --max-tokens 2048
        --validate-interval-updates 1000 --save-interval-updates 1000
    )
fi
beam='{"beam": 5, "max_len_a": 1.2, "max_len_b": 10}'
if [[ ${SELECT:-bleu} == cter ]]; then
    selection=(--eval-cter --eval-cter-args "$beam" --best-checkpoint-metric cter_instance)
else
    selection=(--best-checkpoint-metric bleu --maximize-best-checkpoint-metric)
fi
common=(
    --dropout 0.3 --label-smoothing 0.1 --weight-decay 0.0001 "${size[@]}" "${schedule[@]}"
    --eval-bleu --eval-bleu-args "$beam" --eval-bleu-remove-bpe "${selection[@]}"
    --validate-interval 1000000 --max-tokens-valid 8192
)
other=(
    --optimizer adam --adam-betas '(0.9,0.98)'
    --share-decoder-input-output-embed "${transformer_size[@]}" "${common[@]}"
)
case "${METHOD:-sq}" in
    proto | proto-*)
        variant="${METHOD#proto-}" stages=(--prototype-stage1-epochs "${STAGE1_EPOCHS:-8}")
        case "$variant" in
            proto) variant=one-pass ;;
            random | two-pass) stages=() ;; # prototypes from the first update
        esac
        train --arch proto_transformer_cognition --criterion label_smoothed_cross_entropy \
            --prototypes "$variant" "${stages[@]}" "${other[@]}"
        ;;
    cat)
        train --arch cat_transformer_cognition --criterion composition_cross_entropy \
            "${cat_size[@]}" "${other[@]}"
        ;;
    transformer)
        train --arch transformer_iwslt_de_en --criterion label_smoothed_cross_entropy \
            "${other[@]}"
        ;;
    *) train_sq sq_transformer_cognition "${sq_size[@]}" "${common[@]}" ;;
esac
