"""What a person types in the recorded session, station by station, and how each line must end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RUN: Final = ".workflow/run-SLUGS-1"
ISSUE: Final = """redfirst issue new --title "Refuse titles that make no name" \\
  --body - <<'END'
`slug("!?")` returns "!?", which is no part of an address.

## Acceptance criteria
- [ ] a title without a letter or digit raises ValueError
- [ ] white space around a title is left out
END"""


@dataclass(frozen=True)
class Step:
    """One line that is typed.

    Args:
        line: The line, or several that belong together.
        code: The exit code that it must have.
        says: What must then stand on the screen.
        then: What is typed when this is to be seen: a pattern, and the keys.
    """

    line: str
    code: int = 0
    says: str = ""
    then: tuple[str, str] | None = None


STATIONS: Final[dict[str, tuple[Step, ...]]] = {
    "Install": (Step("uv tool install ~/redfirst"), Step("redfirst --version")),
    "Init": (
        Step("cd slugs && ls"),
        Step('redfirst init --agent command --argv "python3 $HOME/agent.py"'),
        Step("git add redfirst.toml && git commit -m 'configure redfirst'"),
        Step("redfirst trust", then=(r"\[y/N\]:? ", "y\r")),
    ),
    "Doctor": (Step("redfirst doctor --agents"),),
    "First issue": (
        Step(ISSUE),
        Step("git add TODO && git commit -m 'issue SLUGS-1'"),
        Step("redfirst issue ready"),
    ),
    "A run with two gates": (
        Step("git switch -c slugs-1"),
        Step("redfirst run SLUGS-1 --approve plan,commit", code=4, says="parked at gate plan (1 of 2)"),
    ),
    "An edit": (
        Step(f"cat {RUN}/plan.md"),
        Step(f"sed -i 's/a ValueError/& that names it/' {RUN}/plan.md"),
    ),
    "A rejection": (
        Step('redfirst reject --feedback "Say how tabs are treated."', code=4, says="parked at gate plan (1 of 2)"),
        Step(f"diff {RUN}/plan-1.md {RUN}/plan.md", code=1),
    ),
    "An approval, and Ctrl-C": (Step("redfirst approve", code=130, then=(r"0:0[1-9] @make", "\x03")),),
    "Resume": (
        Step("redfirst show"),
        Step("redfirst resume", code=4, says="parked at gate commit (2 of 2)"),
        Step("redfirst diff --stat"),
    ),
    "The second gate": (Step("redfirst approve"), Step("git status --short --branch")),
    "Landing by hand": (
        Step("git switch main && git merge slugs-1"),
        Step("redfirst verify"),
        Step("git log --oneline"),
    ),
}
