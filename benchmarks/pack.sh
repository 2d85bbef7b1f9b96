#!/usr/bin/env bash
# Packs what a machine without internet needs besides Python, PyTorch and a C++ compiler: the
# last commit, fairseq's source, and the other requirements as wheels.
#   [PYTHON_VERSION=3.12] PATH=$PWD/.venv/bin:$PATH bash benchmarks/pack.sh FILE.tar
# There:
#   tar xf FILE.tar && cd compgen
#   python -m pip install --no-index --no-deps wheels/*.whl
#   python -m pip install --no-index --no-deps --no-build-isolation wheels/*.tar.gz --editable .
#   python benchmarks/gpu_check.py runs/gpu-check
set -euo pipefail
if [[ $# -ne 1 ]]; then
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
root="$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
version="${PYTHON_VERSION:-$(python3 -c 'import platform; print(platform.python_version())')}"
work="$(mktemp -d "$1.packing.XXXXXX")"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/compgen/wheels"
git -C "$root" archive HEAD | tar x -C "$work/compgen"
sources='^(fairseq-fixed|antlr4-python3-runtime)==' # of these PyPI has no wheels
grep -Ev "$sources" "$root/constraints.txt" >"$work/wheels.txt"
grep -E "$sources" "$root/constraints.txt" >"$work/sources.txt"
printf '%s\n' pytest pytest-timeout pytest-xdist execnet iniconfig pluggy 'setuptools<82' wheel >>"$work/wheels.txt"
platforms=()
for tag in 2_28 2_27 2_24 2_17 2014 1; do platforms+=(--platform "manylinux${tag/#2_/_2_}_x86_64"); done
echo "pack: wheels for Python $version"
python3 -m pip download --quiet --no-deps --only-binary=:all: --implementation cp \
    --python-version "$version" "${platforms[@]}" --dest "$work/compgen/wheels" \
    --requirement "$work/wheels.txt"
echo "pack: fairseq's and ANTLR's source"
python3 -m pip download --quiet --no-deps --no-build-isolation --no-binary=:all: \
    --dest "$work/compgen/wheels" --requirement "$work/sources.txt"
tar cf "$work/pack.tar" -C "$work" compgen
mv "$work/pack.tar" "$1"
echo "pack: $1, $(du -h "$1" | cut -f1), $(find "$work/compgen/wheels" -type f | wc -l) packages"
