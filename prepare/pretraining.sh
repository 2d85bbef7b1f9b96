#!/usr/bin/env bash
# Prepare text for pre-training CAT as a fairseq data folder; --help says how.
set -euo pipefail
name=pretraining python=${PYTHON:-python}
command -v "$python" >/dev/null ||
  { echo "prepare/$name.sh: there is no $python; set PYTHON to a Python with fairseq." >&2; exit 1; }
exec "$python" "$(dirname "${BASH_SOURCE[0]}")/../compgen_fairseq/data" "$name" "$@"
