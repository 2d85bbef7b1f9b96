#!/usr/bin/env bash
# Trains one model on a prepared CoGnition folder; run again, it resumes.
#   [METHOD=srl] [SEED=1] [SIZE=tiny|paper] [UPDATES=N] [LAUNCH=...] \
#       bash examples/cognition/train.sh DATA SAVE [FLAG...]
# DATA comes from prepare/cognition.sh; SAVE is the folder of the checkpoints and the log; more
# flags go to fairseq-train. The environment's variables are explained in examples/recipe.sh;
# SELECT says what chooses the checkpoint: bleu (the default), loss (that of SIZE=paper with METHOD
# transformer, cat or proto...), or cter, instance CTER (prepare with --valid cg20).
set -euo pipefail
: "${METHOD:=srl}"
# shellcheck source=../recipe.sh
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

if [[ $SIZE == paper ]]; then
    validation=(
        --validate-interval 1000000 --validate-interval-updates 5000 --save-interval-updates 5000
    )
    if is_transformer; then # as Proto-Transformer's authors: patience of 10 epochs
        : "${UPDATES:=50000}" "${STAGE1_EPOCHS:=8}" "${SELECT:=loss}"
        validation=(--validate-interval 1 --patience 10)
    else # SQ-Transformer's appendix B.2 and its authors' settings
        : "${UPDATES:=1000000}"
    fi
    size=() transformer_size=()
    cat_size=(--encoder-attention-heads 4 --decoder-attention-heads 4) # as transformer has
    schedule=(--lr 5e-4 --lr-scheduler inverse_sqrt --warmup-updates 4000 --max-tokens 4096)
else # 2 + 2 layers, 128 wide, for the low-resource setting
    : "${UPDATES:=2000}" "${STAGE1_EPOCHS:=3}"
    size=(
        --encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 128
        --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256
        --encoder-attention-heads 4 --decoder-attention-heads 4
    )
    transformer_size=(--decoder-embed-dim 128)
    cat_size=(--codes 256)
    schedule=(
        --lr 3e-3 --lr-scheduler polynomial_decay --total-num-update "$UPDATES"
        --warmup-updates 300 --max-tokens 2048
    )
    validation=(
        --validate-interval 1000000 --validate-interval-updates 1000 --save-interval-updates 1000
    )
fi
beam='{"beam": 5, "max_len_a": 1.2, "max_len_b": 10}'
bleu=(--eval-bleu --eval-bleu-args "$beam" --eval-bleu-remove-bpe)
case "${SELECT:=bleu}" in
    bleu) selection=("${bleu[@]}" --best-checkpoint-metric bleu --maximize-best-checkpoint-metric) ;;
    loss) selection=(--best-checkpoint-metric loss) ;;
    cter)
        [[ -e $data/cter/valid.compound ]] ||
            refuse "SELECT=cter needs compounds in the validation set, but there is no" \
                "$data/cter/valid.compound; prepare with --valid cg20"
        selection=(
            "${bleu[@]}" --eval-cter --eval-cter-args "$beam"
            --best-checkpoint-metric cter_instance
        )
        ;;
    *) refuse "SELECT=$SELECT is none of bleu, loss, cter" ;;
esac
common=(
    --dropout 0.3 --label-smoothing 0.1 --weight-decay 0.0001 "${size[@]}" "${schedule[@]}"
    "${validation[@]}" "${selection[@]}" --max-tokens-valid 8192
)
if is_transformer; then
    [[ $METHOD == cat ]] && transformer_size+=("${cat_size[@]}")
    train_transformer transformer_iwslt_de_en cat_transformer_cognition \
        proto_transformer_cognition "${transformer_size[@]}" "${common[@]}"
else
    train_sq sq_transformer_cognition "${common[@]}"
fi
