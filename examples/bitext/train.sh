#!/usr/bin/env bash
# Trains one model on parallel text; run again, it resumes.
#   [METHOD=srl] [SEED=1] [SIZE=tiny|paper] [UPDATES=N] [SELECT=bleu] [LAUNCH=...] \
#       bash examples/RECIPE/train.sh DATA SAVE [FLAG...]
# RECIPE is wmt17_en_de (Multi30k, too), wmt14_en_fr, iwslt14_en_de or, for text of your own, bitext,
# whose SIZE=paper is that of IWSLT. DATA comes from the script in prepare/; SAVE is the folder of the
# checkpoints and the log; more flags go to fairseq-train. METHOD is srl, sal, plain,
# transformer, cat, proto or another of examples/recipe.sh, where the environment's variables are
# explained. SELECT says what chooses the checkpoint: bleu (the default), loss or, for data with
# --tokenized --bpe-merges 0, exact_match.
set -euo pipefail
: "${METHOD:=srl}"
# shellcheck source=../translation.sh
source "$(dirname "${BASH_SOURCE[0]}")/../translation.sh"

case "$recipe" in
    wmt17_en_de) train_translation sq_transformer_wmt_en_de 0.3 2000000 15 ;;
    wmt14_en_fr) train_translation sq_transformer_wmt_en_fr 0.1 2000000 1 ;; # of about 8 epochs
    iwslt14_en_de | bitext) # of about 100 epochs of IWSLT
        train_translation sq_transformer_iwslt_de_en 0.3 100000 12
        ;;
    *) refuse "the name of the script's folder, $recipe, is that of no recipe" ;;
esac
