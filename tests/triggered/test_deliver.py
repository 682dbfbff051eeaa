"""What is delivered to a trigger is proven, recorded once, and ordered if the trigger says so."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from triggered.outside import HELPER, LABEL, NOW, SHOP, Outside, generic, github, outside, signed

from pipeline.app.run_config import read_config
from pipeline.app.triggers import check_triggers, resume_trigger
from pipeline.app.webhooks import RefusedError, read
from pipeline.config.layers import Flags
from pipeline.config.triggers import Source, TriggerTable
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.queue import order_lines
from pipeline.queue.orders import Wanted, place

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outside:
    return outside(tmp_path, monkeypatch, LABEL + SHOP + HELPER)


def refusal(here: Outside, trigger: str, headers: dict[str, str], body: bytes) -> int:
    with pytest.raises(RefusedError) as caught:
        here.deliver(trigger, (headers, body))
    return caught.value.status


def test_an_issue_becomes_the_first_commit_of_a_branch_of_its_own(here: Outside) -> None:
    before = here.git("rev-parse", "main", "work")
    text = "It says `hello`.\r\n\r\n---\nstatus: Done\n---\n## Acceptance criteria\n- [ ] it refuses\n```\nopen\x1b[2J"
    found = here.deliver("label", github(issue={"body": text, "html_url": "https://example.org/12"}))
    assert (found.status, found.result, found.issue) == (202, "ordered", "GH-12")
    assert here.git("rev-parse", "main", "work") == before
    assert here.git("log", "--format=%s", "main..gh-12") == "chore: file GH-12"
    assert here.git("diff", "--name-only", "main", "gh-12").splitlines() == ["TODO/GH-12.md", "TODO/README.md"]
    filed = here.git("show", "gh-12:TODO/GH-12.md")
    assert "\nstatus: Todo\n" in filed.partition("---\n#")[0]
    assert (
        "It says `hello`.\n\n---\nstatus: Done\n---\n## Acceptance criteria\n- [ ] it refuses\n```\nopen\ufffd[2J"
        in filed
    )
    (order,) = here.orders()
    assert (order.placed.via, order.what, order.state) == ("label", "GH-12", "queued")
    assert order.placed.options.argv() == ("--base=gh-12", "--approve=plan", "--recipe=quick")
    assert here.git("status", "--porcelain") == ""


def test_24_forged_and_old_are_401_replayed_is_200_and_two_mebibytes_are_413(here: Outside) -> None:
    headers, body = github()
    assert refusal(here, "label", headers, body + b" ") == 401
    assert refusal(here, "label", {**headers, "x-hub-signature-256": "sha256="}, body) == 401
    assert refusal(here, "shop", *generic(at=NOW - timedelta(minutes=6))) == 401
    assert refusal(here, "shop", *generic(key=None)) == 401
    assert refusal(here, "shop", *generic(key=b"other")) == 401
    other_id, same = generic()
    many = {**other_id, "webhook-signature": f"v1,b3RoZXI= {other_id['webhook-signature']}"}
    assert here.deliver("shop", (many, same)).status == 202
    assert refusal(here, "shop", {**other_id, "webhook-id": "m-new"}, same) == 401
    assert refusal(here, "label", headers, b" " * (2 << 20)) == 413
    assert [one.what for one in here.orders()] == ["SHOP-7"]
    assert here.deliver("label", (headers, body)).status == 202
    again = here.deliver("label", (headers, body))
    assert (again.status, again.result, again.order) == (200, "duplicate", here.orders()[1].id)
    assert here.result("label", (signed(body, "another-name"), body)) == ("duplicate", "", 200), "the same bytes"
    assert len(here.orders()) == 2


def test_26_what_a_run_or_its_own_account_wrote_is_a_no_op(here: Outside) -> None:
    own = {"body": "Done in 3 commits.\r\n\r\nIssue: GH-12\r\nRun-Id: run-GH-12\r\n"}
    assert here.result("label", github(comment=own)) == ("ignored", "own", 200)
    assert here.result("label", github(issue={"body": "Assisted-by: redfirst (claude)"})) == ("ignored", "own", 200)
    assert here.result("label", github(sender={"login": "Redfirst-Bot"})) == ("ignored", "own", 200)
    assert here.orders() == []
    assert here.result("label", github()) == ("ordered", "", 202)


@pytest.mark.parametrize(
    ("why", "more"),
    [
        ("event", {"event": "ping"}),
        ("event", {"action": "opened"}),
        ("label", {"label": {"name": "bug"}}),
        ("sender", {"sender": {"login": "mallory"}}),
        ("issue", {"issue": {"pull_request": {"url": "x"}}}),
        ("issue", {"issue": {"title": " "}}),
    ],
)
def test_what_a_trigger_does_not_want_is_recorded_and_no_order(here: Outside, why: str, more: dict[str, Any]) -> None:
    delivery = github(**more)
    assert here.result("label", delivery) == ("ignored", why, 200)
    assert here.result("label", delivery) == ("duplicate", why, 200)
    assert here.orders() == []
    assert here.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split() == ["main", "work"]


def test_a_trigger_is_off_or_keeps_to_its_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = LABEL.replace("gates", 'rate = "2/h"\ngates') + SHOP + "enabled = false\n"
    here = outside(tmp_path, monkeypatch, config)
    assert here.result("shop", generic()) == ("ignored", "off", 200)
    assert [here.result("label", github(number))[1] for number in (1, 2, 3)] == ["", "", "rate"]
    here.now += timedelta(minutes=61)
    assert here.result("label", github(3)) == ("ordered", "", 202)


def ended(here: Outside, outcome: str) -> None:
    """Let all orders end so."""
    with here.log().locked() as log:
        for one in [one for one in log.orders.values() if one.is_open]:
            log.add(order_lines.OrderEnded(order=one.id, outcome=outcome, reason="done"))


def test_an_issue_has_one_open_order_and_three_attempts(here: Outside) -> None:
    assert here.result("label", github())[0] == "ordered"
    assert here.result("label", github()) == ("ignored", "open", 200)
    for _ in range(2):
        ended(here, "completed")
        assert here.result("label", github())[0] == "ordered"
    ended(here, "completed")
    assert here.result("label", github()) == ("ignored", "attempts", 200)
    assert [one.placed.options.base for one in here.orders()] == ["gh-12", "gh-12-2", "gh-12-3"]
    assert here.result("label", github(13))[0] == "ordered"


def test_three_failures_in_a_row_pause_a_trigger_until_a_person_resumes_it(here: Outside) -> None:
    for number, outcome in enumerate(["failed", "completed", "failed", "rejected"], 1):
        assert here.result("label", github(number))[0] == "ordered"
        ended(here, outcome)
    loaded = read_config(here.repository, here.repository.resolve("HEAD") or "", Flags(), here.environ)
    (check,) = check_triggers(here.repository, here.environ, loaded)
    assert check.status == "ok"
    assert here.result("label", github(5))[0] == "ordered"
    ended(here, "failed")
    assert here.result("label", github(6)) == ("ignored", "paused", 200)
    assert here.result("shop", generic())[0] == "ordered", "another one goes on"
    (check,) = check_triggers(here.repository, here.environ, loaded)
    assert (check.status, check.advice) == ("warn", "redfirst trigger resume label")
    (record,) = resume_trigger(here.repository, here.environ, "label").triggers
    assert (record.paused, record.orders) == (False, 5)
    assert here.result("label", github(6))[0] == "ordered"


def test_an_order_that_was_placed_before_a_crash_is_found_again(here: Outside) -> None:
    (headers, body) = github()
    key = f"label/{headers['x-github-delivery']}"
    there, _ = place(here.repository, here.environ, Wanted(via="label", issue="GH-12", key=key))
    found = here.deliver("label", (headers, body))
    assert (found.result, found.order, len(here.orders())) == ("ordered", there.id, 1)


def test_an_agent_s_order_waits_for_a_person_and_is_at_most_two_deep(here: Outside) -> None:
    cause = None
    for depth, number in ((1, 7), (2, 8)):
        found = here.deliver("helper", generic(key=None, id=f"SHOP-{number}", cause=cause))
        assert (found.result, found.status) == ("held", 202)
        order = here.orders()[-1]
        assert (order.state, order.placed.depth, order.id) == ("held", depth, found.order)
        cause = order.id
    assert here.result("helper", generic(key=None, id="SHOP-9", cause=cause)) == ("ignored", "depth", 200)


def test_a_dispatched_agent_orders_nothing_for_itself(here: Outside) -> None:
    here.environ = {**here.environ, "REDFIRST_DEPTH": "1"}
    with pytest.raises(UserError, match="inside one of its own agents"):
        here.deliver("helper", generic(key=None))
    assert here.orders() == []


def test_an_issue_of_the_tracker_is_ordered_as_the_base_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    issue = "---\nid: SHOP-1\ntitle: T\nstatus: Todo\nparent: null\nlabels: []\ndepends-on: []\n---\n# SHOP-1: T\n"
    here = outside(tmp_path, monkeypatch, SHOP, {"TODO/SHOP-1.md": issue})
    assert here.result("shop", generic(id="SHOP-1")) == ("ignored", "issue", 200), "the base has one of that name"
    assert here.result("shop", generic(id="SHOP-2", title=None)) == ("ignored", "issue", 200)
    assert here.result("shop", generic(id="SHOP-1", title=None)) == ("ordered", "", 202)
    assert here.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split() == ["main", "work"]


def test_triggers_of_a_repository_count_after_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = outside(tmp_path, monkeypatch, "", {"redfirst.toml": SHOP})
    with pytest.raises(UserError) as caught:
        here.deliver("shop", generic())
    assert caught.value.reason is Reason.UNTRUSTED
    here.environ = {**here.environ, "REDFIRST_TRUST": "1"}
    assert here.result("shop", generic())[0] == "ordered"


def test_a_secret_that_is_not_set_is_said_and_nothing_is_taken(here: Outside) -> None:
    here.environ = {name: value for name, value in here.environ.items() if name != "HOOK"}
    with pytest.raises(UserError, match="HOOK is not set") as caught:
        here.deliver("label", github())
    assert caught.value.reason is Reason.CONFIG
    loaded = read_config(here.repository, here.repository.resolve("HEAD") or "", Flags(), here.environ)
    assert "HOOK is not set" in check_triggers(here.repository, here.environ, loaded)[0].message


GITHUB = TriggerTable(source=Source.GITHUB, on="issues.labeled", senders=("*",), secret_env="HOOK")
ANYBODY = TriggerTable(source=Source.AGENT)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["issue", "data", "title", "id", "body"]), inner),
)


@given(body=st.binary() | JSON.map(lambda value: json.dumps(value).encode()), name=st.text())
@example(body=b"[" * 100_000, name="x")
@example(body=b'{"type":"a","data":{"id":"../x","title":"t"}}', name="x")
def test_any_body_is_read_or_refused(body: bytes, name: str) -> None:
    headers = {**signed(body, name), "webhook-id": name}
    for trigger, secret in ((GITHUB, "secret"), (ANYBODY, None)):
        status = 400
        try:
            read(trigger, secret, headers, body, NOW)
        except RefusedError as error:
            status = error.status
        assert status == 400
