#!/usr/bin/env bash
# Trains one model on a prepared COGS folder; run again, it resumes.
#   [METHOD=srl] [SEED=1] [SIZE=tiny|paper] [UPDATES=N] [LAUNCH=...] \
#       bash examples/cogs/train.sh DATA SAVE [FLAG...]
# DATA comes from prepare/cogs.sh; SAVE is the folder of the checkpoints and the log; more flags go
# to fairseq-train. The environment's variables are explained in examples/recipe.sh.
set -euo pipefail
: "${METHOD:=srl}"
# shellcheck source=../recipe.sh
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

if [[ $SIZE == paper ]]; then # the paper's appendix B.2 and its authors' settings
    : "${UPDATES:=100000}" "${STAGE1_EPOCHS:=40}"
    transformer_size=(
        --encoder-layers 3 --decoder-layers 3 --encoder-embed-dim 256
        --encoder-ffn-embed-dim 512 --decoder-ffn-embed-dim 512
    )
    common=(
        --dropout 0.3 --lr 5e-4 --lr-scheduler inverse_sqrt --warmup-updates 4000 --max-tokens 4096
    )
else # 2 + 2 layers, 128 wide
    : "${UPDATES:=8000}" "${STAGE1_EPOCHS:=2}"
    transformer_size=()
    common=(
        --encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 128
        --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256
        --dropout 0.1 --lr 3e-3 --lr-scheduler polynomial_decay --total-num-update "$UPDATES"
        --warmup-updates 300 --max-tokens 4096 --train-batches mixed --adam-betas '(0.9,0.999)'
    )
fi
common+=(
    --weight-decay 0 --validate-interval-updates 2000 --save-interval-updates 2000
    --eval-exact-match --best-checkpoint-metric exact_match --maximize-best-checkpoint-metric
    --validate-interval 1000000 --max-tokens-valid 8192
)
if is_transformer; then
    train_transformer transformer cat_transformer_cogs proto_transformer "${transformer_size[@]}" \
        --encoder-attention-heads 4 --decoder-attention-heads 4 "${common[@]}"
else
    train_sq sq_transformer_cogs "${common[@]}"
fi
