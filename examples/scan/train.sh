#!/usr/bin/env bash
# Trains one model on a prepared SCAN folder; run again, it resumes.
#   [METHOD=sal] [SEED=1] [SIZE=tiny|paper] [UPDATES=N] [LAUNCH=...] \
#       bash examples/scan/train.sh DATA SAVE [FLAG...]
# DATA comes from prepare/scan.sh; SAVE is the folder of the checkpoints and the log; more flags go
# to fairseq-train. The environment's variables are explained in examples/recipe.sh. Besides the
# methods there METHOD can be syntactic, syntactic-sequential, syntactic-action,
# syntactic-mlp (Syntactic Attention and its ablations: its authors' 200,000 pairs, 32 at a time;
# with SIZE=paper one at a time, an hour on a CPU),
# syntactic-classes (ours: exchangeable words share their syntax, and markers mean the end alone),
# syntactic-meanings (ours: also, a class alone means the words that it exchanges; scaled attention)
# or lstm.
set -euo pipefail
: "${METHOD:=sal}"
# shellcheck source=../recipe.sh
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

selection=(
    --eval-exact-match --best-checkpoint-metric exact_match --maximize-best-checkpoint-metric
    --validate-interval 1000000 --max-tokens-valid 8192
)
OTHER_METHODS="syntactic, syntactic-sequential, syntactic-action, syntactic-mlp, syntactic-classes, \
syntactic-meanings, lstm"
if method_is_of "$OTHER_METHODS"; then
    train_recurrent "${selection[@]}"
    exit
fi

# The prototypes' stage 1 is 14% of AddJump 2x's epochs; for AroundRight's 1,790 take 180 or more.
if [[ $SIZE == paper ]]; then # the paper's appendix B.2 and its authors' settings
    : "${UPDATES:=100000}" "${STAGE1_EPOCHS:=40}"
    transformer_size=(
        --encoder-layers 3 --decoder-layers 3 --encoder-embed-dim 256
        --encoder-ffn-embed-dim 512 --decoder-ffn-embed-dim 512
    )
    common=(
        --lr 5e-4 --lr-scheduler inverse_sqrt --warmup-updates 4000 --max-tokens 4096
        --validate-interval-updates 1000 --save-interval-updates 1000
    )
else # 2 + 2 layers, 64 wide
    : "${UPDATES:=9000}" "${STAGE1_EPOCHS:=1}"
    transformer_size=()
    common=(
        --encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 64
        --encoder-ffn-embed-dim 128 --decoder-ffn-embed-dim 128
        --lr 3e-3 --lr-scheduler polynomial_decay --total-num-update "$UPDATES"
        --warmup-updates 300 --max-tokens 2048 --train-batches mixed
        --validate-interval-updates 500 --save-interval-updates 500
    )
fi
if [[ $METHOD == sal-meanings ]]; then # as many codes as the substitution test finds classes
    common+=(--source-codes 10 --target-codes 3)
fi
common+=(--dropout 0.3 --weight-decay 0.1 "${selection[@]}")
if is_transformer; then
    train_transformer transformer cat_transformer_scan proto_transformer "${transformer_size[@]}" \
        --encoder-attention-heads 4 --decoder-attention-heads 4 "${common[@]}"
else
    train_sq sq_transformer_scan "${common[@]}"
fi
