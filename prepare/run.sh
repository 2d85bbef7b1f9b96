#!/usr/bin/env bash
# Prepare a data set as a fairseq data folder. The scripts NAME.sh beside this one are links to it;
# NAME.sh --help says what it makes and how.
set -euo pipefail
name=$(basename "${BASH_SOURCE[0]}" .sh) python=${PYTHON:-python}
root="$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
if ! "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("fairseq") is None)' 2>/dev/null; then
  how="set PYTHON"
  if [[ -e $root/Makefile ]]; then how="after make setup: export PATH=$root/.venv/bin:\$PATH, or $how"; fi
  echo "prepare/$name.sh: there is no $python with fairseq; $how" >&2
  exit 1
fi
exec "$python" -m compgen_cli.prepare "$name" "$@"
