#!/usr/bin/env bash
# Fine-tunes a pre-trained CAT model on labelled sentences; run again, it resumes.
#   PRETRAINED=FILE [REPRESENTATION=cont|comp|mix] [BACKBONE=frozen|trained] [SEED=1] [EPOCHS=4] \
#       [BATCH=32] [LR=X] [LAUNCH=...] bash examples/cat/finetune.sh DATA SAVE [FLAG...]
# DATA comes from prepare/paws.sh, sts_b.sh or sst2.sh; SAVE is the folder of the checkpoints and
# the log; more flags go to fairseq-train. The checkpoint with the best accuracy on the validation
# set, or for numbers the smallest squared error, is the chosen one. EPOCHS are those of one process;
# UPDATES, where it is set, counts instead.
set -euo pipefail
# shellcheck source=../recipe.sh
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

[[ -f ${PRETRAINED:-} ]] ||
    refuse "PRETRAINED=${PRETRAINED:-} is not a file; name a checkpoint of examples/cat/train.sh"
case "${BACKBONE:=frozen}" in
    frozen) frozen=(--freeze-backbone) lr=1e-3 ;;         # the paper's section 5.1
    trained) frozen=(--ddp-backend legacy_ddp) lr=5e-5 ;; # its appendix C.3; BERT's heads are unused
    *) refuse "BACKBONE=$BACKBONE is neither frozen nor trained" ;;
esac
[[ ${REPRESENTATION:=mix} == @(cont|comp|mix) ]] ||
    refuse "REPRESENTATION=$REPRESENTATION is none of cont, comp, mix"

METHOD="$REPRESENTATION-$BACKBONE of $(cksum <"$PRETRAINED")"
lr="${LR:-$lr}"
[[ $lr =~ ^[0-9]+(\.[0-9]+)?(e-?[0-9]+)?$ ]] || # fairseq evaluates it
    refuse "LR=${lr@Q} is not a number"
pairs="$(python "$root/examples/sentences.py" "$data" train)"
[[ $pairs != 0 ]] || refuse "$data has nothing to train on"
sizes="$(PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" python "$root/examples/cat/sizes.py" \
    "$PRETRAINED" "$REPRESENTATION")"
mapfile -t sizes <<<"$sizes"
: "${BATCH:=32}" "${EPOCHS:=4}"
UPDATES="${UPDATES:-$((EPOCHS * ((pairs + BATCH - 1) / BATCH)))}"

target=(--num-classes 1 --regression-target)
if [[ -e $data/label/dict.txt ]]; then
    target=(
        --num-classes "$(wc -l <"$data/label/dict.txt")"
        --best-checkpoint-metric accuracy --maximize-best-checkpoint-metric
    )
fi

train --task sentence_prediction --criterion sentence_prediction "${sizes[@]}" \
    --finetune-from-model "$PRETRAINED" --representation "$REPRESENTATION" "${frozen[@]}" \
    --init-token 0 --shorten-method truncate "${target[@]}" \
    --optimizer adam --adam-betas '(0.9,0.999)' --weight-decay 0.01 --clip-norm 1 \
    --lr "$lr" --lr-scheduler polynomial_decay --total-num-update "$UPDATES" \
    --warmup-updates $((UPDATES / 16)) --batch-size "$BATCH" --required-batch-size-multiple 1
