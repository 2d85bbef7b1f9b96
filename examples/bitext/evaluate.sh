#!/usr/bin/env bash
# Translates the test set with a run's chosen and last checkpoint and scores both.
#   [BEAM=5] bash examples/RECIPE/evaluate.sh DATA SAVE [FLAG...]   (RECIPE as for train.sh)
# For each of NAME = best, last it leaves SAVE/test.NAME.log (fairseq-generate), bleu.NAME.json,
# chrf.NAME.json, where the data have compounds cter.NAME.json, where they have cases cogs.NAME.json
# (exact match by case), where they are prepared with --tokenized --bpe-merges 0
# exact_match.NAME.json and, for models that have codes, codes.NAME.json (the words of each code).
set -euo pipefail
# shellcheck source=../translation.sh
source "$(dirname "${BASH_SOURCE[0]}")/../translation.sh"

evaluate_translation
