#!/usr/bin/env bash
# SQ-Transformer (sal-meanings, ours) beside the same model without codes (plain): same size, updates,
# dropout and seed, on SCAN AddJump 2x. Data from the grammar, training, decoding of the whole test set,
# a page of results.
#   [SEED=1] [UPDATES=2200] [DATA_DIR=data-bin] [RUNS_DIR=runs] bash examples/scan/quickstart.sh
# Batches have half the recipe's tokens: many small updates teach more than few large ones. Three to five
# minutes on two cores: sal-meanings 83%, plain 14% (seed 1, AMD EPYC; machines round differently). The
# whole trainings:
# `python examples/tables.py runs 'scan-addjump-2x/64-wide/(plain|sal-meanings)\.1$'`.
# What is there already is used again; an interrupted training resumes.
set -euo pipefail
root="$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
# shellcheck source=../whole.sh
source "$root/examples/whole.sh"
if [[ $# -gt 0 ]]; then usage; fi
installed "$root"
whole 0 SEED
whole 1 UPDATES
seed="${SEED:-1}" updates="${UPDATES:-2200}" runs="${RUNS_DIR:-$root/runs}"
table="scan-addjump-2x/quickstart-$updates" data="${DATA_DIR:-$root/data-bin}"

plugin="$root/compgen_fairseq"
[[ -d $plugin ]] || plugin=compgen_fairseq # a copy by compgen-examples: the installed one
every=$(((updates + 1) / 2)) # the last checkpoint and one halfway
flags="--max-tokens 1024 --validate-interval-updates $every --save-interval-updates $every"
mkdir -p "$runs"
file="$runs/quickstart-$updates.$seed.txt"
cat >"$file" <<END
data scan-addjump-2x scan scan.sh addjump --augment 2
run 1 $table sal-meanings $seed UPDATES=$updates $flags
run 1 $table plain $seed UPDATES=$updates $flags
END
python "$root/examples/tables.py" "$runs" "" --file "$file" --data "$data" --jobs 2
sq="$runs/$table/sal-meanings.$seed" plain="$runs/$table/plain.$seed"
compgen-report "$sq" "$plain" --html "$runs/$table/report.html"

score() { python -c 'import json, sys; s = json.load(open(sys.argv[1]))
print("{score:.2f} % ({correct:,} of {total:,})".format(**s))' "$1/test.best.json"; }
cat <<END
SQ-Transformer (SAL, class meanings): $(score "$sq") of SCAN's add-jump test commands right
plain (the same without codes):       $(score "$plain")
Both have the same size, updates, dropout and seed; training has "jump" by itself alone.
The last checkpoints, learning curves and significance: $runs/$table/report.html
To see how a command is translated, and which word each action comes from:
  echo jump around left twice | $(printf '%q ' fairseq-interactive "$data/scan-addjump-2x" \
    --user-dir "$plugin" --cpu --path "$sq/checkpoint_best.pt" --beam 1 --print-alignment)
END
