#!/usr/bin/env bash
# Trains one model on a prepared WMT14 En-Fr folder; run again, it resumes.
#   [METHOD=sq] [SEED=1] [SIZE=tiny|paper] [UPDATES=N] [LAUNCH=...] \
#       bash examples/wmt14_en_fr/train.sh DATA SAVE [FLAG...]
# DATA comes from prepare/wmt14_en_fr.sh; SAVE is the folder of the checkpoints and the log; more
# flags go to fairseq-train. The environment's variables are explained in examples/recipe.sh.
set -euo pipefail
# shellcheck source=../translation.sh
source "$(dirname "${BASH_SOURCE[0]}")/../translation.sh"

train_translation sq_transformer_wmt_en_fr 0.1 2000000 1 # of about 8 epochs
