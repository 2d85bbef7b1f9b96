#!/usr/bin/env bash
# Trains one model on a prepared IWSLT14 folder; run again, it resumes.
#   [METHOD=sq] [SEED=1] [SIZE=tiny|paper] [UPDATES=N] [LAUNCH=...] \
#       bash examples/iwslt14_en_de/train.sh DATA SAVE [FLAG...]
# DATA comes from prepare/iwslt14_en_de.sh; SAVE is the folder of the checkpoints and the log; more
# flags go to fairseq-train. The environment's variables are explained in examples/recipe.sh.
set -euo pipefail
# shellcheck source=../translation.sh
source "$(dirname "${BASH_SOURCE[0]}")/../translation.sh"
more=(--source-lang en --target-lang de "${more[@]}") # the folder is binarised as de-en

train_translation sq_transformer_iwslt_de_en 0.3 100000 12 # of about 100 epochs
