#!/usr/bin/env bash
# Install the coding agents that the tests drive, in tested versions, into a folder (.agents-cache by default), and say
# where each is. Nothing is installed for the machine. What cannot be had is named; with --require, that is a failure.
set -euo pipefail
export LC_ALL=C

# name, package, version, what is run: a native program where there is one, since some wrappers outlive a signal.
agents='
claude @anthropic-ai/claude-code 2.1.197 @anthropic-ai/claude-code-*/claude
codex @openai/codex 0.169.0 @openai/codex-*/vendor/*/bin/codex
opencode opencode-ai 1.18.33 opencode-*/bin/opencode
gemini @google/gemini-cli 0.61.0 @google/gemini-cli/bundle/gemini.js
claude-agent-acp @agentclientprotocol/claude-agent-acp 0.49.0 @agentclientprotocol/claude-agent-acp/dist/index.js
codex-acp @zed-industries/codex-acp 0.16.0 @zed-industries/codex-acp-*/bin/codex-acp
'
# With --show nothing is installed: it only says what is there.
usage="usage: agent-clis.sh [--require | --show] [FOLDER]"

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
folder=${1:-$(dirname "$0")/../.agents-cache}

wanted() {
  local name package version run separator=""
  printf '{"private": true, "dependencies": {'
  while read -r name package version run; do
    [ -n "$name" ] || continue
    printf '%s"%s": "%s"' "$separator" "$package" "$version"
    separator=", "
  done <<<"$agents"
  printf '}}\n'
}

# The platforms' packages hold the programs, so no package's own script has to run.
install() {
  command -v npm >/dev/null || { echo "agent-clis: npm is not installed" >&2; return 1; }
  mkdir -p "$folder"
  wanted >"$folder/package.json"
  rm -f "$folder/package-lock.json" "$folder/installed.json"
  npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error >&2 || return 1
  wanted >"$folder/installed.json"
}

if [ "$show" -eq 0 ] && [ "$(cat "$folder/installed.json" 2>/dev/null)" != "$(wanted)" ]; then
  install || true
fi
mkdir -p "$folder" 2>/dev/null || true
folder=$(cd "$folder" && pwd)

missing=()
listing=""
while read -r name package version run; do
  [ -n "$name" ] || continue
  # The first of several: of two builds for a processor the one that older processors run too sorts before the other.
  found=$(compgen -G "$folder/node_modules/$run" | head -n 1 || true)
  if [ -z "$found" ] || ! grep -qF "\"version\": \"$version\"" "$folder/node_modules/$package/package.json"; then
    missing+=("$name")
  elif [ "${found%.js}" != "$found" ] && ! command -v node >/dev/null; then
    missing+=("$name")
  else
    listing+="$name $version $found"$'\n'
  fi
done <<<"$agents"

printf '%s' "$listing" | tee "$folder/agents.txt"
[ "${#missing[@]}" -eq 0 ] && exit 0
echo "agent-clis: left out, their tests will be skipped: ${missing[*]}" >&2
echo "agent-clis: they come from npm, with node 20 or newer; then run: scripts/agent-clis.sh" >&2
exit "$require"
