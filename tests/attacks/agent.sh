# Looks at what it was given, at the view before and after an attack, and answers as the role would. The attack runs in the same shell, so that
# its parent is the box's first process, as an agent's is.
view=$PWD
look() {
  (
    cd "$view" || exit
    find .git -printf '%p %y %m %s %n %l %T@\n' | LC_ALL=C sort | cksum
    find . -mindepth 1 -path ./.git -prune -o -printf '%p %y %m %s %n %l %T@ %C@\n' | LC_ALL=C sort | cksum
  ) 2>&1 | tr -s ' \n' '::'
}
finish() {
  echo "attack-after $(look)"
  [ -e "$REDFIRST_REPORT" ] || [ -L "$REDFIRST_REPORT" ] || printf '%s' "$ATTACK_REPORT" > "$REDFIRST_REPORT"
}
found() {
  find . -path ./.git -prune -o -printf '%p %y %m %s %l\n' | LC_ALL=C sort
  find . -path ./.git -prune -o -type f -print | LC_ALL=C sort | xargs -d '\n' cat
  cat .git/config .git/HEAD .git/info/* .git/hooks/* 2> /dev/null # its objects may stay from another tree
}
trap finish EXIT
echo "attack-found $(found 2>&1 | cksum)"
echo "attack-before $(look)"
