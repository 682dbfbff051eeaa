"""What can happen in one dispatch to a real agent, whichever it is: a script of the model, and what must come back.

A backend that differs for a good reason says so in `but`, with the reason beside it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from backends.real_agents import COMPLETE
from model_service.script import (
    Cut,
    Empty,
    Fail,
    Garbage,
    Hang,
    Refuse,
    Report,
    Say,
    Truncate,
    Use,
    call,
    conversation,
    edit,
    read,
    run,
    write,
)

from pipeline.agents.backends.protocol import Ended, Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from model_service.script import Conversation

    from pipeline.agents.backends.protocol import AgentResult


@dataclass(frozen=True)
class Facts:
    """What the result says.

    Args:
        report: The report, None if there is none.
        fault: Its kind of failure.
        complaint: A passage of the sentence for the agent, None if there must be none.
        ended: How the process ended, None if it does not matter.
        changes: The paths that changed in the workspace.
        denied: What one of the denials names, None if there must be none.
    """

    report: Mapping[str, Any] | None = None
    fault: Fault | None = None
    complaint: str | None = None
    ended: Ended | None = None
    changes: frozenset[str] = frozenset()
    denied: str | None = None

    def check(self, result: AgentResult, changes: Mapping[str, Any]) -> None:
        """Fail where the result says otherwise."""
        told = (result, result.stdout[-3000:], result.stderr[-1000:])
        assert result.fault == self.fault, told
        assert (result.complaint is None) == (self.complaint is None), told
        assert re.search(self.complaint or "", result.complaint or ""), told
        if self.complaint is None:
            assert json.loads(result.report_file or b"null") == self.report, told
        if self.ended is not None:
            assert result.ended is self.ended, told
        assert changes.keys() == self.changes, told
        assert bool(result.denials) == (self.denied is not None), told
        assert any((self.denied or "") in line for line in result.denials or ("",)), told


@dataclass(frozen=True)
class Case:
    """One situation.

    Args:
        name: What it is called.
        script: What the model says.
        facts: What must come back.
        job: What the job says otherwise.
        writable: Whether the workspace may be changed.
        but: What comes back from single backends.
    """

    name: str
    script: tuple[Conversation, ...]
    facts: Facts
    job: Mapping[str, Any] = field(default_factory=dict[str, Any])
    writable: bool = True
    but: Mapping[str, Facts] = field(default_factory=dict[str, Facts])

    def check(self, backend: str, result: AgentResult, changes: Mapping[str, Any]) -> None:
        """Fail where the result of *backend* is another."""
        self.but.get(backend, self.facts).check(result, changes)


DONE = Facts(report=COMPLETE, ended=Ended.OK)
_UNAVAILABLE = Facts(fault=Fault.UNAVAILABLE, complaint=r"\w")
_NO_REPORT = Facts(complaint="There was no report")
_EMPTY = Facts(fault=Fault.EMPTY, complaint="without a word")
_WEB = call("WebFetch", {"url": "http://192.0.2.1/", "prompt": "p"})
_WRONG = {"result": "NOPE"}


def _case(name: str, *turns: Any, facts: Facts, **more: Any) -> Case:
    return Case(name, (conversation(*turns),), facts, **more)


CASES = (
    _case(
        "work",
        Use(read("app.py")),
        Use(edit("app.py", "a = 1", "a = 2")),
        Use(write("new.txt", "new\n")),
        Use(run("cat app.py > made.txt")),
        Report(COMPLETE),
        facts=Facts(report=COMPLETE, ended=Ended.OK, changes=frozenset({"app.py", "new.txt", "made.txt"})),
        # It has no shell.
        but={"api": Facts(report=COMPLETE, changes=frozenset({"app.py", "new.txt"}), denied="cat app.py > made.txt")},
    ),
    _case("401", Fail(401), facts=Facts(fault=Fault.UNAUTHORIZED, complaint="401")),
    _case(
        "429 once",
        Fail(429, times=1),
        Report(COMPLETE),
        facts=DONE,
        but={"codex": _UNAVAILABLE},  # it does not try again after a 429
    ),
    _case("429 for ever", Fail(429), facts=_UNAVAILABLE),
    _case("500 for ever", Fail(500), facts=_UNAVAILABLE),
    _case("no such model", Fail(404), facts=_UNAVAILABLE),
    _case("cut once", Cut(400, times=1), Report(COMPLETE), facts=DONE),
    _case("cut for ever", Cut(400), facts=_UNAVAILABLE),
    _case("malformed JSON", Garbage(), facts=_UNAVAILABLE),
    _case(
        "refusal",
        Refuse(),
        facts=Facts(fault=Fault.REFUSED, complaint="declined"),
        but={"codex": _EMPTY},  # its stream does not tell a refusal from an empty answer
    ),
    # Some ask the model to go on, a few times.
    _case("truncated", *[Truncate()] * 4, facts=Facts(fault=Fault.TRUNCATED, complaint=r"cut off|max_output_tokens")),
    Case("empty", (conversation(Empty()),) * 4, _EMPTY),
    _case("no report", Say("All done."), Say("I said so."), facts=_NO_REPORT),
    _case(
        "a report in the last words",
        *[Say(f"All done.\n```json\n{json.dumps(COMPLETE)}\n```")] * 2,
        facts=DONE,
    ),
    _case(
        "a report in the file",
        Use(run(f'printf %s \'{json.dumps(COMPLETE)}\' > "$REDFIRST_REPORT"; cat "$REDFIRST_DISPATCH"')),
        *[Say("Done.")] * 2,
        facts=DONE,
        but={"api": Facts(fault=Fault.DENIED, complaint=r"\w", denied="printf")},  # it has no shell
    ),
    _case(
        "wrong schema",
        *[Report(_WRONG)] * 5,
        facts=Facts(report=_WRONG),  # the routing asks again
        but={"claude": Facts(complaint="did not fit its schema.*must be equal")},  # it has asked again itself
    ),
    _case(
        "a role without tools",
        Use(_WEB),
        Use(call("Write", {"file_path": "/redfirst-view/evil.txt", "content": "x"})),
        Report(COMPLETE),
        facts=Facts(report=COMPLETE, denied="WebFetch"),
        job={"shell": False},
        writable=False,
    ),
    _case(
        "given up over a tool",
        Use(_WEB),
        Say("I could not."),
        Say("I cannot."),
        facts=Facts(fault=Fault.DENIED, complaint="WebFetch", denied="WebFetch"),
    ),
    _case("hang", Hang(), facts=Facts(complaint="within 2 seconds", ended=Ended.TIMED_OUT), job={"timeout_s": 2}),
    _case(
        "hang in an answer",
        Hang(begun=True),
        facts=Facts(complaint="within 3 seconds", ended=Ended.TIMED_OUT),
        job={"timeout_s": 3},
    ),
    _case(
        "killed",
        Use(run("kill -9 $PPID; sleep 60")),
        Report(COMPLETE),
        facts=Facts(complaint="signal 9", ended=Ended.SIGNAL),
        but={"api": Facts(report=COMPLETE, denied="kill")},  # it has no shell, and is no process of its own
    ),
    _case(
        "huge output",
        Use(run("head -c 9000000 /dev/zero | tr '\\0' x")),
        Report(COMPLETE),
        facts=DONE,
        but={"api": Facts(report=COMPLETE, denied="head -c 9000000")},  # it has no shell
    ),
    _case(
        "too many steps",
        *[Use(run("true"))] * 3,
        Report(COMPLETE),
        facts=Facts(fault=Fault.STEPS, complaint="2 answers"),
        job={"max_steps": 2},
        but={
            "codex": DONE,  # it has no such limit; the gateway counts
            "api": Facts(fault=Fault.STEPS, complaint="2 answers", denied="run true"),  # no listed command
        },
    ),
)
