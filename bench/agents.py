"""What a dispatch to a real agent costs over the bare agent: `make bench`, once `scripts/agent-clis.sh` has run.

The same small request (read a file, edit it, report) is answered by a scripted model on loopback. Each round asks every
agent in turn: as a user starts it, over the Agent Client Protocol where redfirst speaks that, and twice by redfirst,
through view, box, gateway, adapter and gate; `first` is a driver's first dispatch, `next` the one after it. Every agent
finds an empty home folder, as it does in the box. `api` runs in our process, so its floor is plain pydantic-ai, with
its import and without.

`before` is from the start to the first request that the model sees, `after` from the last one to the end. Our share is
the difference between a dispatch and the bare agent of the same mode in the same round; it is below zero where a
profile switches off what the agent does for a user (titles, snapshots, plugins). Over the protocol the bare agent has
ended when its answer is there; a dispatch waits for its processes, too. Figures are medians, the spread is that of the
whole. Memory is the most at a time (PSS), of redfirst only what it grew by; `driver` is that part.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import agents_bare
from bench.agents_measure import Asking, asked_within, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.agents_measure import Entry, Model, StreamFacts

    Ask = Callable[[Model, Path, Path], list[StreamFacts]]

HERE: Final = Path(__file__).resolve().parent
FILES: Final = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "TODO/B-1.md": "---\nid: B-1\ntitle: Add\nstatus: Todo\nparent: null\nlabels: []\ndepends-on: []\n---\n# B-1\n",
    "TODO/README.md": "# Issues\n\n## All\n- [ ] [B-1](B-1.md) Add\n",
}
CONVERSATION: Final[Entry] = {
    "when": {"kind": "implement"},
    "turns": [
        {"turn": "use", "acts": [{"act": "read", "path": "calc.py"}]},
        {"turn": "use", "acts": [{"act": "edit", "path": "calc.py", "old": "a - b", "new": "a + b"}]},
        {"turn": "report", "report": {"result": "COMPLETE", "summary": "the sum is right"}},
    ],
}
BARE, ACP, FIRST, NEXT = "bare", "bare, acp", "ours, first", "ours, next"
COLD, WARM = "pydantic-ai, cold", "pydantic-ai, warm"
WAYS: Final = (BARE, ACP, COLD, WARM, FIRST, NEXT)
FLOORS: Final = {FIRST: (COLD, ACP, BARE), NEXT: (WARM, ACP, BARE)}
"""What a dispatch is compared with: the first of these that was measured."""

PARTS: Final = ("before", "between", "after", "whole", "memory", "driver")

Round = dict[str, Asking]


@dataclass(frozen=True)
class Agent:
    """One agent as redfirst is told of it, and which programs that takes."""

    api: str
    lines: str
    programs: tuple[str, ...] = ()
    bare: bool = False
    acp: bool = False

    def configuration(self, url: str) -> str:
        """Return a configuration in which every role is played by it."""
        argv = f"argv = {json.dumps([str(agents_bare.installed()[self.programs[0]])])}\n" if self.programs else ""
        return (
            f'[agents]\n{self.lines}\n{argv}provider = "loop"\nmodel = "scripted"\n'
            f'[providers.loop]\nurl = "{url}"\ncredential_env = "LOOP_KEY"\napi = ["{self.api}"]\n'
        )


AGENTS: Final = {
    "claude": Agent("anthropic", 'backend = "claude"', ("claude",), bare=True),
    "codex": Agent("responses", 'backend = "codex"', ("codex",), bare=True),
    "opencode": Agent("chat", 'backend = "acp"\nprofile = "opencode"', ("opencode",), bare=True, acp=True),
    "gemini": Agent("google", 'backend = "acp"\nprofile = "gemini"', ("gemini",), bare=True, acp=True),
    "claude-agent-acp": Agent(
        "anthropic", 'backend = "acp"\nprofile = "claude"', ("claude-agent-acp", "claude"), acp=True
    ),
    "codex-acp": Agent("responses", 'backend = "acp"\nprofile = "codex"', ("codex-acp", "codex"), acp=True),
    "api": Agent("chat", 'backend = "api"'),
}


def git(folder: Path, *argv: str) -> None:
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    subprocess.run(["git", *who, *argv], cwd=folder, env={**os.environ, **own}, check=True, capture_output=True)


def project(folder: Path) -> Path:
    """Return a repository of one commit."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=start")
    return folder


def environment(home: Path) -> dict[str, str]:
    foreign = ("GIT_", "REDFIRST_", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    own = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "XDG_CONFIG_HOME": str(home / "config")}
    return {**kept, **own, "LOOP_KEY": "the-users-own-key"}


def one_round(name: str, agent: Agent, *, backwards: bool) -> Round:
    """Return what each way to ask one agent took; who comes first finds less in the machine's caches."""
    asks: list[tuple[tuple[str, ...], Ask]] = []
    if agent.bare:
        asks.append(((BARE,), partial(agents_bare.ask, name)))
    if agent.acp:
        asks.append(((ACP,), partial(agents_bare.talk, name)))
    if not agent.programs:
        asks.append(((COLD, WARM), plain))
    asks.append(((FIRST, NEXT), partial(dispatched, agent)))
    found: Round = {}
    for ways, ask in reversed(asks) if backwards else asks:
        found |= measured(ways, ask)
    return {way: found[way] for way in WAYS if way in found}


def measured(ways: Sequence[str], ask: Ask) -> Round:
    """Let *ask* ask a fresh model in a fresh repository, once for each of the ways."""
    with tempfile.TemporaryDirectory(prefix="redfirst-bench-") as folder:
        place = Path(folder)
        work = project(place / "project")
        with serving(place / "model", [CONVERSATION] * len(ways)) as model:
            heard = ask(model, place, work)
        return {way: model.asking(number, one) for number, (way, one) in enumerate(zip(ways, heard, strict=True))}


def plain(model: Model, place: Path, work: Path) -> list[StreamFacts]:
    """Ask with pydantic-ai alone."""
    argv = [sys.executable, "-P", str(HERE / "agents_api.py"), agents_bare.PROMPT.format(workspace=work), model.url]
    return asked_within(argv, work, environment(place / "home"), place / "errors.log", 2)


def dispatched(agent: Agent, model: Model, place: Path, work: Path) -> list[StreamFacts]:
    """Ask through redfirst."""
    home = place / "home"
    settings = home / "config" / "redfirst" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(agent.configuration(model.url), encoding="utf-8")
    argv = [sys.executable, "-P", str(HERE / "agents_ours.py"), str(place / "driver")]
    return asked_within(argv, work, environment(home), place / "errors.log", 2)


# --- what came of it ------------------------------------------------------------------------------------------------


def share(one: Round, way: str) -> Asking | None:
    """Return what a dispatch of a round took over the bare agent in the same round; None for what is no dispatch."""
    floor = next((one[name] for name in FLOORS.get(way, ()) if name in one), None)
    if floor is None:
        return None
    return Asking(**{part: value - asdict(floor)[part] for part, value in asdict(one[way]).items()})


def medians(askings: Sequence[Asking]) -> dict[str, float]:
    """Return the median of each figure, with the spread of the whole."""
    wholes = sorted(asking.whole for asking in askings)
    found = {name: statistics.median(getattr(asking, name) for asking in askings) for name in PARTS}
    return found | {"least": wholes[0], "most": wholes[-1]}


def show(title: str, askings: Sequence[Asking]) -> dict[str, float]:
    found = medians(askings)
    cells = "".join(f"{found[part]:10.0f}" for part in PARTS)
    print(f"  {title:<24}{cells}  ({found['least']:.0f} to {found['most']:.0f})", flush=True)
    return found


def report(name: str, rounds: Sequence[Round]) -> dict[str, dict[str, float]]:
    """Print the figures of one agent, and return them."""
    units = "".join(f"{part:>10}" for part in PARTS)
    print(f"\n{name:<26}{units}")
    found = {way: show(way, [one[way] for one in rounds]) for way in rounds[0]}
    for way in (FIRST, NEXT):
        title = f"our share, {way.rpartition(' ')[2]}"
        found[title] = show(title, [over for one in rounds if (over := share(one, way)) is not None])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--agents", metavar="NAME,...", default=",".join(AGENTS), help="default: %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    asked = parser.parse_args()
    names = asked.agents.split(",")
    if unknown := sorted({*names} - {*AGENTS}):
        parser.error(f"no such agent: {', '.join(unknown)}")
    installed = agents_bare.installed()
    for name in list(names):
        if missing := [program for program in AGENTS[name].programs if program not in installed]:
            print(f"{name} is left out, without {', '.join(missing)}; run scripts/agent-clis.sh")
            names.remove(name)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that nothing is left of it
    load = [os.getloadavg()[0]]
    rounds: dict[str, list[Round]] = {name: [] for name in names}
    for number in range(asked.rounds):
        for name in names:
            rounds[name].append(one_round(name, AGENTS[name], backwards=number % 2 == 1))
    load.append(os.getloadavg()[0])
    print(f"{asked.rounds} rounds; ms and MB; load {load[0]:.1f} before, {load[1]:.1f} after, {os.cpu_count()} cores")
    found = {name: report(name, done) for name, done in rounds.items()}
    if asked.json is not None:
        every = {
            name: [{way: asdict(one) for way, one in each.items()} for each in done] for name, done in rounds.items()
        }
        document = {"rounds": asked.rounds, "load": load, "medians": found, "askings": every}
        asked.json.write_text(json.dumps(document, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
