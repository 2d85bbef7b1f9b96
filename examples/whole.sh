# What recipes check before they begin: their arguments, the installation, numbers of the environment.
# shellcheck shell=bash

# usage: ends with the comment that the script begins with.
usage() {
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

# refuse WORD...: ends with a sentence about what the user got wrong.
refuse() {
    echo "$0: $*" >&2
    exit 2
}

# installed ROOT: refuses to begin where fairseq-train is not on PATH; an installation of ROOT's
# Makefile is in ROOT/.venv.
installed() {
    command -v fairseq-train >/dev/null && return
    local how="activate the environment that has it"
    if [[ -e $1/Makefile ]]; then how="after make setup: export PATH=$1/.venv/bin:\$PATH"; fi
    echo "$0: there is no fairseq-train on PATH; $how" >&2
    exit 1
}

# whole LEAST NAME...: refuses a variable that is set but is not a whole number from LEAST on. Bash
# takes other text in its arithmetic for an expression, which can run commands.
whole() {
    local least="$1" name value
    shift
    for name in "$@"; do
        value="${!name:-$least}"
        if [[ ! $value =~ ^(0|[1-9][0-9]{0,8})$ ]] || ((value < least)); then
            refuse "$name=${value@Q} is not a whole number from $least to 999999999"
        fi
    done
}
