#!/usr/bin/env bash
# Install the system packages that the tests need and that are missing. Without the right to install, say which ones;
# with --require, that is a failure.
set -euo pipefail

require=0
case "${1:-}" in
  --require) require=1 ;;
  "") ;;
  *) echo "usage: system-packages.sh [--require]" >&2; exit 2 ;;
esac

missing=()
command -v git >/dev/null || missing+=(git)
command -v bwrap >/dev/null || missing+=(bubblewrap)
command -v rustc >/dev/null || missing+=(rustc)
command -v go >/dev/null || missing+=(golang-go)
command -v strace >/dev/null || missing+=(strace)
command -v chromium >/dev/null || missing+=(chromium)
compgen -G '/usr/lib/*/faketime/libfaketime.so.1' >/dev/null || missing+=(faketime)
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
[ "${#missing[@]}" -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  as_root=(sudo -n)
fi
if command -v apt-get >/dev/null && { [ "${#as_root[@]}" -eq 0 ] || "${as_root[@]}" true 2>/dev/null; }; then
  "${as_root[@]}" apt-get update -qq
  if [[ " ${missing[*]} " == *" postgresql "* ]]; then  # tests start a server of their own: none is made for the machine
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql-common
    "${as_root[@]}" sed -i 's/^#create_main_cluster = true/create_main_cluster = false/' \
      /etc/postgresql-common/createcluster.conf
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
  exit 0
fi

if [ "${missing[*]}" = postgresql ]; then
  echo "system-packages: the tests of Postgres are skipped; with it they run: sudo apt-get install postgresql" >&2
  exit 0
fi
echo "system-packages: missing and not installable from here: ${missing[*]}" >&2
echo "system-packages: install them with your package manager, for example: sudo apt-get install ${missing[*]}" >&2
exit "$require"
