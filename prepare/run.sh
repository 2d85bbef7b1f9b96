#!/usr/bin/env bash
# Prepare a data set as a fairseq data folder. The scripts NAME.sh beside this one are links to it;
# NAME.sh --help says what it makes and how.
set -euo pipefail
name=$(basename "${BASH_SOURCE[0]}" .sh) python=${PYTHON:-python}
PYTHONPATH="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONPATH
command -v "$python" >/dev/null ||
  { echo "prepare/$name.sh: there is no $python; set PYTHON to a Python with fairseq." >&2; exit 1; }
exec "$python" -m compgen_cli.prepare "$name" "$@"
