#!/usr/bin/env bash
# Prepare parallel text of your own as a fairseq data folder; --help says how.
set -euo pipefail
name=bitext python=${PYTHON:-python}
PYTHONPATH="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONPATH
command -v "$python" >/dev/null ||
  { echo "prepare/$name.sh: there is no $python; set PYTHON to a Python with fairseq." >&2; exit 1; }
exec "$python" -m compgen.data own_text "$@"
