#!/usr/bin/env bash
# A fleet for a try, on this machine alone: Postgres, a hub, two "machines" and two orders, all in one new folder.
# Each machine is a home and a clone; FOLDER/one and FOLDER/two are redfirst there. Agents are scripted.
set -euo pipefail

usage="usage: fleet-demo.sh FOLDER, or fleet-demo.sh --stop FOLDER"
stop=0
if [ "${1:-}" = --stop ]; then stop=1; shift; fi
[ $# -eq 1 ] || { echo "$usage" >&2; exit 2; }
here=$(cd "$(dirname "$0")/.." && pwd)
place=$(realpath -m "$1")

programs=$(compgen -G '/usr/lib/postgresql/*/bin' | sort -V | tail -1 || true)
[ -n "$programs" ] || programs=$(dirname "$(command -v initdb || echo /none/initdb)")
if [ ! -x "$programs/initdb" ]; then
  echo "fleet-demo: Postgres is not installed. On Debian and Ubuntu: sudo apt-get install postgresql" >&2
  exit 1
fi
[ -x "$here/.venv/bin/redfirst" ] || { echo "fleet-demo: redfirst is not installed here: make demo" >&2; exit 1; }

postgres() { # Postgres refuses root
  local program=$1; shift
  local nobody=()
  [ "$(id -u)" -ne 0 ] || nobody=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
  (cd / && "${nobody[@]}" env LC_ALL=C "$programs/$program" "$@" >>"$place/db/said" 2>&1) || { tail -3 "$place/db/said" >&2; exit 1; }
}

if [ "$stop" -eq 1 ]; then
  postgres pg_ctl -D "$place/db/data" -m fast -w stop
  echo "stopped; rm -r $place removes all of it"
  exit 0
fi
if [ -e "$place" ]; then echo "fleet-demo: $place is there already. Name a new folder." >&2; exit 2; fi

# A server that answers on a socket in its folder, and on no port.
mkdir -p "$place"
mkdir -m 700 "$place/db"
touch "$place/db/said"
[ "$(id -u)" -ne 0 ] || chown -R nobody:nogroup "$place/db"
postgres initdb -D "$place/db/data" -U fleet -A trust -E UTF8 --locale=C
postgres pg_ctl -D "$place/db/data" -w -l "$place/db/log" -o "-c listen_addresses= -c unix_socket_directories='$place/db'" start

# The project, with two equal issues: so each worker has one.
project=$place/project
cp -r "$here/scripts/tutorial/slugs" "$project"
git_in() { git -C "$1" -c user.name=Ada -c user.email=ada@example.org "${@:2}"; }
mkdir "$project/TODO"
printf '# Issues\n\n' >"$project/TODO/README.md"
for number in 1 2; do
  title="Refuse titles that make no name, part $number"
  echo "- [ ] [SLUGS-$number](SLUGS-$number.md) $title" >>"$project/TODO/README.md"
  { printf -- '---\nid: SLUGS-%s\ntitle: %s\nstatus: Todo\nparent: null\nlabels: []\ndepends-on: []\n---\n' "$number" "$title"
    printf '# SLUGS-%s: %s\n\n' "$number" "$title"
    cat "$here/scripts/tutorial/issue.md"; } >"$project/TODO/SLUGS-$number.md"
done
git init --quiet --initial-branch=main "$project"
git_in "$project" add --all
git_in "$project" commit --quiet --message='slugs, and what is wanted of it'
git clone --quiet --bare "$project" "$place/hub.git"

agent=$here/scripts/tutorial/agent.py
for name in one two; do
  home=$place/machines/$name
  mkdir -p "$home/config/redfirst"
  git clone --quiet --origin hub "$place/hub.git" "$home/slugs"
  git -C "$home/slugs" config user.name Ada
  git -C "$home/slugs" config user.email ada@example.org
  cat >"$home/config/redfirst/config.toml" <<END
[agents]
backend = "command"
argv = ["python3", "$agent"]
read = ["$agent"]
[toolchains.pytest]
command = ["$here/.venv/bin/python", "-m", "pytest"]
[limits.work]
jobs = 1
[fleet]
hub = "$place/hub.git"
postgres = "host=$place/db user=fleet dbname=postgres"
END
  cat >"$place/$name" <<END
#!/bin/sh
# redfirst on the machine "$name"
cd "$home/slugs" || exit
export HOME="$home" XDG_CONFIG_HOME="$home/config" XDG_STATE_HOME="$home/state" GIT_CONFIG_NOSYSTEM=1
exec "$here/.venv/bin/redfirst" "\$@"
END
  chmod +x "$place/$name"
done

"$place/one" fleet init
"$place/one" queue add SLUGS-1 SLUGS-2
cat <<END
Postgres, the hub and two machines are in $place. Let both work:
  $place/one work --once & $place/two work --once; wait
  $place/one fleet status; $place/one fleet runs
Stop it: $0 --stop $place
END
