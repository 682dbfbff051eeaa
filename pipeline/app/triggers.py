"""Answers what triggers there are, and how they stand; orders issues by schedules and by what is delivered.

A time is known in UTC: where a clock is set back, 2:30 comes twice, and is one time of a schedule. Where it is set
forward, the time that is left out falls on the next one there is. cronsim decides both as Debian's cron does. Each time
is one order, whoever asks.

A delivery is proved, recorded, and the issue ordered that comes with it. The text of an issue is a stranger's. It
becomes a file of the tracker, in the first commit of a branch of its own: the order begins there, and nobody's base has
it before the work is merged. The record is written last: who sends a delivery again that a crash has cut short gets the
order that was placed, or one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from pipeline.app.at_hub import HEADS, look_up_base, refs_of_hub, share_branch
from pipeline.app.documents import Check
from pipeline.app.run_config import read_config, refuse_recursion, trusted_config
from pipeline.app.webhooks import LARGEST, Incoming, RefusedError, read
from pipeline.config.commits import styled
from pipeline.config.layers import Flags
from pipeline.config.triggers import EVERYBODY, CatchUp, Source, TriggerTable
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.matrix.engine.journal import Clock, stamp, utc_now
from pipeline.outcomes import Reason
from pipeline.queue.deliveries import MOST_FAILURES, Delivered, Deliveries, Result, Why, deliveries_of
from pipeline.queue.order_lines import RunWords
from pipeline.queue.orders import OrderLog, Wanted, fleet_for, log_of
from pipeline.repo import NO_OBJECT, Repository, Signature, SigningError
from pipeline.run.preconditions import base_branch
from pipeline.run.store import claims
from pipeline.run.tracker import as_user_errors, in_tree, tree_with
from todo import ErrorKind, NewIssue, TrackerError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pipeline.config.load import Loaded
    from pipeline.config.model import Config


MOST_ATTEMPTS: Final = 3
"""So often triggers order one issue."""


class TriggerRecord(Frozen):
    """A trigger. `missing` is the variable of its secret where that is not set; `orders` counts those it placed."""

    name: str
    source: Source
    enabled: bool
    paused: bool
    missing: str | None
    orders: int


class TriggersDocument(Frozen):
    """What `trigger list` and `trigger resume` print with `--json`."""

    schema_: Literal["redfirst.triggers/1"] = Field(default="redfirst.triggers/1", alias="schema")
    ok: Literal[True] = True
    triggers: tuple[TriggerRecord, ...]


def read_triggers(repository: Repository, environ: Mapping[str, str]) -> Mapping[str, TriggerTable]:
    """Return the triggers by their names, trusted or not.

    Raises:
        UserError: the configuration is broken.
    """
    return read_config(repository, repository.resolve("HEAD") or "", Flags(), environ).config.triggers


def named_trigger(triggers: Mapping[str, TriggerTable], name: str) -> TriggerTable:
    """Return the trigger of a name.

    Raises:
        UserError: there is none.
    """
    if name not in triggers:
        raise UserError(
            f"There is no [triggers.{name}] in the configuration. Triggers: {', '.join(triggers) or 'none'}.",
            Reason.USAGE,
            actions=("redfirst trigger list",),
        )
    return triggers[name]


def obstacle(log: OrderLog, issue: str, triggers: Collection[str]) -> Why:
    """Return why no trigger may order an issue now; empty where one may."""
    of_it = [one for one in log.orders.values() if one.placed.issue == issue]
    if any(one.is_open for one in of_it):
        return "open"
    return "attempts" if sum(one.placed.via in triggers for one in of_it) >= MOST_ATTEMPTS else ""


def list_triggers(
    repository: Repository, environ: Mapping[str, str], triggers: Mapping[str, TriggerTable]
) -> TriggersDocument:
    """Return how triggers stand.

    Raises:
        UserError: orders or deliveries cannot be read.
    """
    log = log_of(repository, environ)
    log.read_on()
    placed = [one.placed.via for one in log.orders.values() if one.placed.via in triggers]
    paused: set[str] = set()
    if placed:  # who only looks makes nothing
        with deliveries_of(repository, environ).hold() as kept:
            paused = {name for name in triggers if kept.is_paused(name, log.orders.values())}
    return TriggersDocument(
        triggers=tuple(
            TriggerRecord(
                name=name,
                source=one.source or Source.AGENT,
                enabled=one.enabled,
                paused=name in paused,
                missing=one.secret_env if one.secret_env is not None and not environ.get(one.secret_env) else None,
                orders=placed.count(name),
            )
            for name, one in triggers.items()
        )
    )


def resume_trigger(repository: Repository, environ: Mapping[str, str], name: str) -> TriggersDocument:
    """Let a trigger go on that failures have paused.

    Raises:
        UserError: there is none of that name, or deliveries cannot be written.
    """
    found = named_trigger(read_triggers(repository, environ), name)
    with deliveries_of(repository, environ).hold() as kept:
        kept.resume(name, utc_now())
    return list_triggers(repository, environ, {name: found})


def check_triggers(repository: Repository, environ: Mapping[str, str], loaded: Loaded) -> list[Check]:
    """Return what keeps triggers from ordering anything; nothing where there are none."""
    try:
        found = list_triggers(repository, environ, loaded.config.triggers).triggers
    except UserError as error:
        return [Check.warn("triggers", error.message)]
    said = [f"{one.name} is paused: its last {MOST_FAILURES} orders failed" for one in found if one.paused]
    mend = [f"redfirst trigger resume {one.name}" for one in found if one.paused]
    said += [f"{one.missing} is not set, the secret of {one.name}" for one in found if one.missing]
    if said:
        return [Check.warn("triggers", "; ".join(said), "; ".join(mend))]
    return [Check.ok("triggers", ", ".join(one.name for one in found))] if found else []


MOST_AT_ONCE: Final = 10
"""So many times of one schedule are made up for."""
_TIMES: Final = "@"
"""What stands behind the name of a trigger whose times are kept: it may have been of another kind."""
_LONGEST: Final = timedelta(days=366)
_PUNCTUAL: Final = timedelta(minutes=2)
"""A worker that was there looks at a time before so much of it has passed."""


def times(trigger: TriggerTable, since: datetime, now: datetime) -> list[datetime]:
    """Return the last times of a schedule after *since* and until *now*, in UTC, oldest first."""
    from cronsim import CronSim  # noqa: PLC0415  (only a schedule needs it)

    found = [max(since, now - _LONGEST)]
    for each in CronSim(trigger.cron or "", found[0].astimezone(ZoneInfo(trigger.timezone))):
        time = each.astimezone(UTC)
        if time > now:
            break
        if time > found[-1]:  # of an hour that comes twice the first one counts
            found.append(time)
    return found[1:][-MOST_AT_ONCE:]


def order_what_is_due(
    repository: Repository, environ: Mapping[str, str], config: Config, log: OrderLog, now: datetime
) -> None:
    """Place the orders of all schedules whose time has come.

    A schedule that nobody has looked at begins now.

    Args:
        repository: Seen from where the worker stands.
        environ: Its environment.
        config: As it counts for the worker.
        log: The orders.
        now: The time.

    Raises:
        UserError: the repository is not trusted, or something of it is broken.
    """
    triggers = {name: one for name, one in config.triggers.items() if one.source is Source.SCHEDULE}
    if not triggers:
        return
    with deliveries_of(repository, environ).hold() as kept:
        for name, trigger in triggers.items():
            newest = kept.newest(name + _TIMES)
            if newest is None:
                kept.add(_record(name, now, now, "ignored", "nothing"), now)
                continue
            due = times(trigger, datetime.fromisoformat(newest.id), now)
            if not due:
                continue
            trusted_config(repository, environ)
            recent = [time for time in due if now - time <= _PUNCTUAL]
            chosen = {CatchUp.ALL: due, CatchUp.LAST: due[-1:], CatchUp.NONE: recent}[trigger.catch_up]
            if not chosen:
                kept.add(_record(name, due[-1], now, "ignored", "missed"), now)
            for time in chosen:
                why = "off" if not trigger.enabled else "paused" if kept.is_paused(name, log.orders.values()) else ""
                first = None if why else _order(repository, config, name, log, time)
                result, why = ("ordered", "") if first else ("ignored", why or "nothing")
                kept.add(_record(name, time, now, result, why, first), now)


def _slot(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="minutes")


def _record(name: str, time: datetime, now: datetime, result: Result, why: Why, order: str | None = None) -> Delivered:
    return Delivered(name + _TIMES, _slot(time), "", stamp(now), result, why, order=order)


def _order(repository: Repository, config: Config, name: str, log: OrderLog, time: datetime) -> str | None:
    """Order so many issues that are ready; return the first order, None where there is none to be placed."""
    trigger, key = config.triggers[name], f"{name}@{_slot(time)}"
    words = RunWords(base=config.base, approve=trigger.gates, recipe=trigger.recipe)
    placed: list[str] = []
    with log.locked():
        there = {one.placed.key: one.id for one in log.orders.values()}
        issues = _ready(repository, config, log)
        for each in [key, *(f"{key}#{number}" for number in range(2, trigger.ready + 1))]:
            if each in there:
                placed.append(there[each])
            elif (issue := next(issues, None)) is not None:
                wanted = Wanted(via=name, issue=issue, key=each, options=words, cause=(key,))
                placed.append(log.place(wanted)[0].id)
    return next(iter(placed), None)


def _ready(repository: Repository, config: Config, log: OrderLog) -> Iterator[str]:
    """Yield the issues of the base that a trigger may order now."""
    issues = in_tree(repository, repository.tree_of(base_branch(repository, "ISSUE", config.base)))
    with as_user_errors(issues):
        found = [issue.id for issue in issues.ready()]
    held = claims(repository)
    yield from (one for one in found if one not in held and not obstacle(log, one, config.triggers))


MOST_DEPTH: Final = 2
_MOST_BRANCHES: Final = 1000
_UNFIT: Final = frozenset({ErrorKind.USAGE, ErrorKind.ISSUE_NOT_FOUND})
_SPANS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_WORDS: Final[dict[Why, str]] = {
    "off": "the trigger is switched off",
    "paused": "its last orders failed; redfirst trigger resume NAME lets it go on",
    "event": "it is another event",
    "label": "it has another label",
    "sender": "this account may not order",
    "own": "a run of redfirst made it",
    "issue": "no issue can be made of it, or the base has one of that name",
    "depth": f"it came of orders that came of orders, more than {MOST_DEPTH} deep",
    "open": "an order for this issue is open",
    "attempts": "triggers have ordered this issue often enough; redfirst queue add ISSUE orders it again",
    "rate": "the trigger has placed as many orders as it may for now",
}


class DeliveryDocument(Frozen):
    """What became of a delivery. `status` is that of HTTP: 202 where it is taken, 200 where there is nothing to do."""

    schema_: Literal["redfirst.delivery/1"] = Field(default="redfirst.delivery/1", alias="schema")
    ok: Literal[True] = True
    trigger: str
    delivery: str
    status: Literal[202, 200]
    result: Result | Literal["duplicate"]
    why: Why
    note: str
    issue: str | None
    order: str | None


def deliver(
    repository: Repository,
    environ: Mapping[str, str],
    name: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    remote: bool = False,
    clock: Clock = utc_now,
) -> DeliveryDocument:
    """Take a delivery and return what became of it.

    Args:
        repository: Seen from where somebody stands.
        environ: Their environment, with the secret.
        name: The trigger.
        headers: By their names in small letters.
        body: As it was sent.
        remote: Whether it came by the network: then every delivery has to be signed.
        clock: Tells the time.

    Raises:
        RefusedError: the delivery is too large, not proven, or cannot be read; nothing is recorded.
        UserError: there is no such trigger, or something of the repository is broken.
    """
    if len(body) > LARGEST:
        raise RefusedError(413, f"The body has more than {LARGEST >> 20} MiB.")
    refuse_recursion(environ)
    config = trusted_config(repository, environ)
    if remote and (name not in config.triggers or config.triggers[name].secret_env is None):
        raise RefusedError(404, "There is no such address.")
    trigger, now = named_trigger(config.triggers, name), clock()
    if trigger.source is Source.SCHEDULE:
        raise UserError(f"{name} is a schedule, and nothing is delivered to it.", Reason.USAGE)
    incoming = read(trigger, _secret(trigger, environ), headers, body, now)
    url = fleet_for(repository, environ).hub
    hub = _look_at_hub(repository, url, config, incoming)
    with deliveries_of(repository, environ).hold() as kept:
        known = kept.find(name, incoming.id, incoming.digest)
        if known is not None:
            return _document(known, "duplicate")
        with log_of(repository, environ).locked() as log:
            found = _Taking(repository, config, name, incoming, kept, log, now, hub).outcome()
        kept.add(found, now)
    base = log.orders[found.order].placed.options.base if found.order is not None else None
    why = share_branch(repository, url, base) if url is not None and base and base != config.base else ""
    document = _document(found, found.result)
    return document.model_copy(update={"note": f"only this machine can begin it: {why}"}) if why else document


@dataclass(frozen=True)
class _AtHub:
    """What the hub of a fleet has: branches that are called after the issue, and the base where that is ahead."""

    branches: frozenset[str] = frozenset()
    base: str | None = None


def _look_at_hub(repository: Repository, url: str | None, config: Config, incoming: Incoming) -> _AtHub:
    """Return what the hub has, before anything is locked; nothing where it is out of reach: then this machine knows."""
    issue = incoming.issue
    if url is None or not isinstance(issue, NewIssue):
        return _AtHub()
    try:
        refs = refs_of_hub(repository, url, f"{HEADS}{str(issue.id).lower()}*", brings=lambda _: False)
        base = look_up_base(repository, url, base_branch(repository, str(issue.id), config.base))
    except UserError:
        return _AtHub()
    return _AtHub(frozenset(ref.removeprefix(HEADS) for ref in refs), base)


def _secret(trigger: TriggerTable, environ: Mapping[str, str]) -> str | None:
    if trigger.secret_env is None:
        return None
    secret = environ.get(trigger.secret_env, "")
    if not secret:
        raise UserError(f"The variable {trigger.secret_env} is not set, which holds the secret.", Reason.CONFIG)
    return secret


def _document(one: Delivered, result: Result | Literal["duplicate"]) -> DeliveryDocument:
    return DeliveryDocument.from_fields(
        one,
        delivery=one.id,
        status=202 if result in {"ordered", "held"} else 200,
        result=result,
        note="it was delivered before" if result == "duplicate" else _WORDS.get(one.why, ""),
    )


class _UnfitError(Exception):
    """No issue can be made of what was delivered."""


@dataclass(frozen=True)
class _Taking:
    """One delivery that nobody has seen, while deliveries and orders are locked."""

    repository: Repository
    config: Config
    name: str
    incoming: Incoming
    kept: Deliveries
    log: OrderLog
    now: datetime
    hub: _AtHub

    @property
    def _trigger(self) -> TriggerTable:
        return self.config.triggers[self.name]

    @property
    def _issue(self) -> str | None:
        issue = self.incoming.issue
        return issue.id if isinstance(issue, NewIssue) else issue

    @property
    def _depth(self) -> int:
        cause = self.log.orders.get(self.incoming.cause or "")
        came_of_one = self.incoming.cause is not None or self._trigger.source is Source.AGENT
        return came_of_one + (cause.placed.depth if cause is not None else 0)

    def outcome(self) -> Delivered:
        """Order what is to be ordered, and return what became of the delivery."""
        key = f"{self.name}/{self.incoming.id}"
        placed = next((one for one in self.log.orders.values() if one.placed.key == key), None)
        if placed is not None:  # a crash came between the order and the record
            return self._as("held" if placed.state == "held" else "ordered", order=placed.id)
        why = self._why_not()
        base = None
        if not why:
            try:
                base = self._begin()
            except _UnfitError:
                why = "issue"
        if why:
            return self._as("ignored", why)
        held = self._trigger.source is Source.AGENT
        wanted = Wanted(
            via=self.name,
            issue=self._issue,
            key=key,
            options=RunWords(base=base, approve=self._trigger.gates, recipe=self._trigger.recipe),
            cause=(key, *filter(None, [self.incoming.cause])),
            depth=self._depth,
            held=held,
        )
        return self._as("held" if held else "ordered", order=self.log.place(wanted)[0].id)

    def _as(self, result: Result, why: Why = "", order: str | None = None) -> Delivered:
        one = self.incoming
        return Delivered(self.name, one.id, one.digest, stamp(self.now), result, why, self._issue, order)

    def _why_not(self) -> Why:
        """Return why nothing is ordered; empty where something is."""
        one, trigger, orders = self.incoming, self._trigger, self.log.orders.values()
        event, _, label = (trigger.on or "").partition(":")
        senders = {name.casefold() for name in trigger.senders}
        checks: dict[Why, bool] = {
            "off": not trigger.enabled,
            "paused": self.kept.is_paused(self.name, orders),
            "event": bool(event) and one.event != event,
            "label": bool(label) and label not in one.labels,
            "own": one.is_own or one.sender.casefold() == (trigger.own_login or "\0").casefold(),
            "sender": bool(senders) and not senders & {one.sender.casefold(), EVERYBODY},
            "issue": self._issue is None,
            "depth": self._depth > MOST_DEPTH,
        }
        for why, holds in checks.items():
            if holds:
                return why
        if found := obstacle(self.log, self._issue or "", self.config.triggers):
            return found
        most, _, unit = trigger.rate.partition("/")
        return "rate" if self.kept.orders_since(self.name, self.now - _SPANS[unit]) >= int(most) else ""

    def _begin(self) -> str | None:
        """Return the branch that the run begins on: a new one with the issue, or the base that has it.

        Raises:
            _UnfitError: the issue cannot be filed, or there is none.
            UserError: there is no base, the tracker is broken, or the commit cannot be made.
        """
        repository, issue = self.repository, self.incoming.issue
        base = base_branch(repository, self._issue or "", self.config.base)
        tip = self.hub.base or repository.resolve(base)
        if tip is None:
            raise UserError(f"The branch {base} has no commit yet. Commit the project first.", Reason.USAGE)
        tree = repository.tree_of(tip)
        tracker = in_tree(repository, tree)
        with as_user_errors(tracker):
            try:
                if not isinstance(issue, NewIssue):
                    tracker.read(issue or "")
                    return self.config.base
                tree = tree_with(repository, tree, tracker, tracker.create(issue)[1])
            except TrackerError as error:
                if error.kind in _UNFIT:
                    raise _UnfitError from error
                raise
        return self._branch(str(issue.id), tree, tip)

    def _branch(self, issue: str, tree: str, tip: str) -> str:
        """Return a new branch whose first commit files the issue."""
        repository = self.repository
        who = Signature(*repository.identity(), f"{int(self.now.timestamp())} +0000")
        plain = f"chore: file {issue}\n\nTrigger: {self.name}\n"
        message = styled(plain, self.config.commits, issue, f"{who.name} <{who.email}>")
        try:
            commit = repository.commit_tree(tree, [tip], message, who, sign=repository.signing_key())
        except SigningError as error:
            raise UserError(f"The commit of {issue} could not be signed: {error}", Reason.SIGNING) from error
        for number in range(1, _MOST_BRANCHES):
            name = issue.lower() if number == 1 else f"{issue.lower()}-{number}"
            if name not in self.hub.branches and repository.set_ref(f"refs/heads/{name}", commit, NO_OBJECT):
                return name
        raise UserError(f"git takes no branch {issue.lower()}. See what is in its way: git branch --list", Reason.USAGE)
