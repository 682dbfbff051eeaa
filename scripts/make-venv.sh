#!/usr/bin/env bash
# Make the environment of this project in the folder $1 and install the project with its development group into it.
# PYTHON chooses the interpreter; pip uses whatever index the machine is configured for.
set -euo pipefail

venv=${1:?usage: make-venv.sh FOLDER}
cd "$(dirname "$0")/.."

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local name
  for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if command -v "$name" >/dev/null && new_enough "$name"; then
      command -v "$name"
      return
    fi
  done
  echo "make-venv: no Python >= 3.11 found (tried ${PYTHON:-python3 and python3.11 to python3.14}); set PYTHON=..." >&2
  return 1
}

if ! { [ -x "$venv/bin/python" ] && new_enough "$venv/bin/python"; }; then
  python=$(find_python)
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "make-venv: $python has no venv module; on Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 1
  fi
  "$python" -m venv --clear "$venv"
fi

echo "make-venv: redfirst and what its tests need is installed into $venv; that takes a minute or two" >&2
export PIP_DISABLE_PIP_VERSION_CHECK=1
# --group came with pip 25.1; an interpreter may bring an older one.
"$venv/bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
"$venv/bin/python" -m pip install --quiet --editable . --group dev
