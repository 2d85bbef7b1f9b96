#!/usr/bin/env bash
# Trains one model on a prepared WMT17 En-De or Multi30k En-De folder; run again, it resumes.
#   [METHOD=sq] [SEED=1] [SIZE=tiny|paper] [UPDATES=N] [LAUNCH=...] \
#       bash examples/wmt17_en_de/train.sh DATA SAVE [FLAG...]
# DATA comes from prepare/wmt17_en_de.sh or prepare/multi30k_en_de.sh; SAVE is the folder of the
# checkpoints and the log; more flags go to fairseq-train. The environment's variables are explained
# in examples/recipe.sh.
set -euo pipefail
# shellcheck source=../translation.sh
source "$(dirname "${BASH_SOURCE[0]}")/../translation.sh"

train_translation sq_transformer_wmt_en_de 0.3 2000000 15
