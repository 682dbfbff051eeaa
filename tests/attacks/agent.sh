# Looks at the view before and after an attack, and answers as the role would. The attack runs in the same shell, so that
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
trap finish EXIT
echo "attack-before $(look)"
