#!/usr/bin/env bash
# Trains one model on parallel text of your own; run again, it resumes.
#   [METHOD=sq] [SEED=1] [SIZE=tiny|paper] [UPDATES=N] [LAUNCH=...] \
#       bash examples/bitext/train.sh DATA SAVE [FLAG...]
# DATA comes from prepare/bitext.sh; SAVE is the folder of the checkpoints and the log; more flags
# go to fairseq-train. METHOD is sq (SRL), sal, plain, transformer, cat, proto or another of
# examples/recipe.sh, where the environment's variables are explained. SIZE=paper is that of IWSLT.
set -euo pipefail
# shellcheck source=../translation.sh
source "$(dirname "${BASH_SOURCE[0]}")/../translation.sh"

train_translation sq_transformer_iwslt_de_en 0.3 100000 12
