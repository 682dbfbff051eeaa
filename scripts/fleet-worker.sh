#!/bin/sh
# A worker of compose.yaml, in a home of its own: a clone of the hub, and the configuration of /config with the fleet in it.
# It is for containers: it writes into HOME, and refuses one that has a configuration of git.
set -eu
hub=${FLEET_HUB:-/hub.git} place=$HOME/project
if [ ! -d "$place" ]; then
  [ ! -e "$HOME/.gitconfig" ] || { echo "fleet-worker: $HOME is somebody's home. This is for containers." >&2; exit 2; }
  printf '[safe]\n\tdirectory = %s\n[user]\n\tname = redfirst\n\temail = redfirst@localhost\n' "$hub" >"$HOME/.gitconfig"
  mkdir -p "$HOME/.config"
  cp -r "${FLEET_CONFIG:-/config}" "$HOME/.config/redfirst"
  git clone --quiet --origin hub "$hub" "$place"
fi
cd "$place"
redfirst config set --user fleet.hub "$hub"
redfirst config set --user fleet.postgres "${FLEET_POSTGRES:-host=postgres user=redfirst dbname=redfirst}"
redfirst fleet init
exec redfirst work "$@"
