#!/usr/bin/env bash
# Prepare a SCAN split as a fairseq data folder; --help says how.
set -euo pipefail

usage() {
  cat <<'EOF'
Usage: prepare/scan.sh SPLIT DEST [--augment N] [--atomic-copies N]
                       [--valid test20|train20] [--valid-size N] [--seed S] [--from FOLDER]

Writes a fairseq data folder DEST (languages src and tgt), with the text in DEST/raw and the
settings, sizes, versions and checksums in DEST/PREPARED.json. DEST appears only when it is
complete; the same settings give the same bytes. When DEST is there already with these settings,
nothing is done; with other settings, nothing is touched and the exit code is not 0.

SPLIT             addjump, addturnleft, right, opposite_right, around_right, jump_around_right or
                  length (generated); simple, jump_num1, jump_num2, jump_num4, jump_num8, jump_num16
                  or jump_num32 (read from the official files)
--augment N       addjump only: N mutated copies of each primitive (Nx primitive augmentation)
--atomic-copies N with --augment: extra copies of each bare primitive (default: 1000)
--valid WHICH     test20 (default): a random 20% of the test set, which keeps it. This validation
                  set is a part of the test set: say so wherever a number is reported.
                  train20: a random 20% of the training set, which loses it
--valid-size N    this many validation pairs instead of the 20%
--seed S          chooses the validation set (default: 1)
--from FOLDER     the official SCAN files, a clone of github.com/brendenlake/SCAN
                  (default: $COMPGEN_DATA/scan)

The environment's PYTHON (default: python) is the Python that has fairseq.
EOF
}

fail() {
  echo "prepare/scan.sh: $1" >&2
  exit "${2:-1}"
}

options=() names=()
while (($#)); do
  case $1 in
    -h | --help)
      usage
      exit
      ;;
    --?*=*)
      set -- "${1%%=*}" "${1#*=}" "${@:2}"
      ;;
    --augment | --atomic-copies | --valid | --valid-size | --seed | --from)
      (($# > 1)) || fail "$1 needs a value." 2
      options+=("${1/#--from/--data}" "$2")
      shift 2
      ;;
    -*)
      fail "there is no option $1; see --help." 2
      ;;
    *)
      names+=("$1")
      shift
      ;;
  esac
done
((${#names[@]} == 2)) || fail "give one SPLIT and one DEST; see --help." 2
split=${names[0]} dest=${names[1]}

python=${PYTHON:-python}
command -v "$python" >/dev/null || fail "there is no $python; set PYTHON to a Python with fairseq."
"$python" -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("fairseq_cli"))' ||
  fail "$python has no fairseq; set PYTHON to a Python with fairseq."
scan=$(dirname "${BASH_SOURCE[0]}")/../compgen_fairseq/data/scan.py
generate=("$python" "$scan" ${options[@]+"${options[@]}"} "$split")
settings=$("${generate[@]}" "$dest" --settings)

if [[ -e $dest && -n $(ls -A "$dest") ]]; then
  "$python" - "$dest" "$settings" <<'EOF'
import hashlib
import json
import sys
from pathlib import Path

dest, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
try:
    record = json.loads((dest / "PREPARED.json").read_text())
    present, files = record["settings"], record["sha256"]
except (OSError, ValueError, LookupError, TypeError):
    sys.exit(f"prepare/scan.sh: {dest} is there and was not prepared by this script.")
if present != settings:
    sys.exit(f"prepare/scan.sh: {dest} was prepared with other settings: {json.dumps(present)}.")
for name, sha256 in files.items():
    path = dest / name
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        sys.exit(f"prepare/scan.sh: {path} is missing or changed; remove {dest} and run again.")
print(f"{dest} is already prepared with these settings.")
EOF
  exit
fi

mkdir -p "$(dirname "$dest")"
work=$(mktemp -d "$(dirname "$dest")/.scan-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/data"
"${generate[@]}" "$work/data/raw" >/dev/null
"$python" -m fairseq_cli.preprocess --source-lang src --target-lang tgt \
  --trainpref "$work/data/raw/train" --validpref "$work/data/raw/valid" \
  --testpref "$work/data/raw/test" --destdir "$work/data" --padding-factor 1 --workers 1 \
  >"$work/log" 2>&1 || {
  cat "$work/log" >&2
  fail "fairseq-preprocess failed; its output is above."
}
rm -f "$work/data/preprocess.log" # holds paths and times

"$python" - "$work/data" "$dest" "$settings" <<'EOF'
import hashlib
import json
import platform
import sys
from importlib import metadata
from pathlib import Path

data, dest, settings = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
fairseq = metadata.packages_distributions().get("fairseq", [])
record = {
    "settings": settings,
    "pairs": {
        part: (data / "raw" / f"{part}.src").read_bytes().count(b"\n")
        for part in ("train", "valid", "test")
    },
    "versions": {"python": platform.python_version(), **{n: metadata.version(n) for n in fairseq}},
    "sha256": {
        path.relative_to(data).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(data.rglob("*"))
        if path.is_file()
    },
}
(data / "PREPARED.json").write_text(json.dumps(record, indent=2) + "\n")
try:
    data.rename(dest)
except OSError as error:
    sys.exit(f"prepare/scan.sh: {dest} cannot be put in place: {error.strerror}.")
print(f"{dest}:", ", ".join(f"{n} {part}" for part, n in record["pairs"].items()), "pairs")
EOF
