#!/usr/bin/env bash
# Trains one model on the prepared daxy folder; run again, it resumes.
#   [METHOD=syntactic|syntactic-classes|lstm|transformer] [SEED=1] [UPDATES=6250] \
#       bash examples/daxy/train.sh DATA SAVE [FLAG...]
# DATA comes from prepare/daxy.sh; SAVE is the folder of the checkpoints and the log; more flags go
# to fairseq-train. Every method gets the same batches, 200,000 pairs by default, and the
# checkpoint with the best validation BLEU is the chosen one. (SIZE=paper: all but transformer take
# one pair an update.)
set -euo pipefail
# shellcheck source=../recipe.sh
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

common=(
    --train-batches mixed --batch-size-valid 128
    --eval-bleu --eval-bleu-args '{"beam": 5, "max_len_a": 1.2, "max_len_b": 10}'
    --eval-tokenized-bleu
    --best-checkpoint-metric bleu --maximize-best-checkpoint-metric
)
case "${METHOD:=syntactic}" in
    syntactic | syntactic-classes) # unscaled, seed 1 learns nothing
        train_recurrent --scaled-attention "${common[@]}"
        ;;
    lstm) train_recurrent "${common[@]}" ;;
    transformer)
        : "${UPDATES:=6250}"
        train --arch transformer --dropout 0.3 --share-decoder-input-output-embed \
            --encoder-layers 2 --encoder-embed-dim 128 \
            --encoder-ffn-embed-dim 256 --encoder-attention-heads 4 \
            --decoder-layers 2 --decoder-embed-dim 128 \
            --decoder-ffn-embed-dim 256 --decoder-attention-heads 4 \
            --criterion cross_entropy --optimizer adam --lr 1e-3 --lr-scheduler inverse_sqrt \
            --warmup-updates 500 --batch-size 32 --validate-interval 1000000 \
            --validate-interval-updates 1250 --save-interval-updates 1250 "${common[@]}"
        ;;
    *) refuse "METHOD=$METHOD is none of syntactic, syntactic-classes, lstm, transformer" ;;
esac
