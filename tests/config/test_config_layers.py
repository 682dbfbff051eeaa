from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from pipeline.config.agents import Backend
from pipeline.config.layers import Flags
from pipeline.config.load import Loaded, load, require_agents, without_effect
from pipeline.config.model import BoxMode, Config, OnBlockers
from pipeline.config.sources import Layer, Origin, RepositoryFile, tracker_folder
from pipeline.errors import UserError
from pipeline.matrix.routing.matrix import BOUNDS
from pipeline.outcomes import Reason
from pipeline.vocabulary import Loop, Role

CONTRACT_EXAMPLE = """
sandbox = "auto"
[agents]
backend = "command"
argv = ["python3", "/opt/bot/agent.py"]
read = ["/opt/bot"]
network = "none"
timeout_s = 900
[agents.check]
backend = "scripted"
script = "answers.yaml"
[limits]
plan_review = 3
[final_review]
on_blockers = "commit"
[failure]
keep = "ref"
[stub_first]
pytest = false
cargo = true
[budget]
cost_usd = 5.0
[toolchains.pytest]
command = ["python", "-m", "pytest"]
setup = ["uv", "sync"]
[checks]
fix = [["ruff", "format", "{files}"]]
commands = [["ruff", "check", "."]]
"""


def read(
    tmp_path: Path,
    *,
    repository: str | None = None,
    user: str | None = None,
    environ: dict[str, str] | None = None,
    flags: Flags | None = None,
) -> Loaded:
    config_home = tmp_path / "xdg"
    if user is not None:
        (config_home / "redfirst").mkdir(parents=True)
        (config_home / "redfirst" / "config.toml").write_text(user)
    repo_file = None if repository is None else RepositoryFile("redfirst.toml", repository.encode(), tracked=True)
    worktree = tmp_path / "repo"
    worktree.mkdir()
    variables = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(config_home), **(environ or {})}
    return load(worktree, environ=variables, repo_file=repo_file, flags=flags)


def refused(tmp_path: Path, **layers: str) -> UserError:
    with pytest.raises(UserError) as caught:
        read(tmp_path, repository=layers.get("repository"), user=layers.get("user"))
    assert caught.value.reason is Reason.CONFIG
    return caught.value


def test_without_any_layer_every_value_is_the_default(tmp_path: Path) -> None:
    loaded = read(tmp_path)
    assert loaded.config == Config()
    assert set(loaded.origins.values()) == {Origin(Layer.DEFAULT)}
    assert loaded.widening == ()


def test_the_default_limits_are_the_bounds_of_the_matrix() -> None:
    config, elsewhere = Config(), {Loop.HUMAN, Loop.QUESTIONS}
    configured = {loop: getattr(config.limits, loop.value) for loop in Loop if loop not in elsewhere}
    assert configured == {loop: bound.limit for loop, bound in BOUNDS.items() if loop not in elsewhere}
    assert config.gates.questions == BOUNDS[Loop.QUESTIONS].limit


def test_the_example_of_the_contract_is_read(tmp_path: Path) -> None:
    config = read(tmp_path, repository=CONTRACT_EXAMPLE).config
    assert config.agent(Role.MAKE).argv == ("python3", "/opt/bot/agent.py")
    assert config.agent(Role.CHECK).backend is Backend.SCRIPTED
    assert config.agent(Role.CHECK).script == str(tmp_path / "repo" / "answers.yaml")
    assert config.agent(Role.PM).backend is Backend.BUILTIN
    assert config.budget.cost_usd == 5.0
    assert config.toolchains.settings_of("pytest").setup == ("uv", "sync")
    assert config.checks.fix == (("ruff", "format", "{files}"),)


def test_each_layer_is_stronger_than_the_one_before(tmp_path: Path) -> None:
    loaded = read(
        tmp_path,
        repository="[limits]\nhygiene = 3\nseam = 3\nreask = 3\ncosmetic = 3\n",
        user="[limits]\nseam = 4\nreask = 4\ncosmetic = 4\n",
        environ={"REDFIRST_LIMITS__REASK": "5", "REDFIRST_LIMITS__COSMETIC": "5"},
        flags=Flags(values={"limits.cosmetic": "6"}),
    )
    limits = loaded.config.limits
    assert (limits.make_retry, limits.hygiene, limits.seam, limits.reask, limits.cosmetic) == (1, 3, 4, 5, 6)
    user_file = str(tmp_path / "xdg" / "redfirst" / "config.toml")
    assert loaded.origins["limits.make_retry"] == Origin(Layer.DEFAULT)
    assert loaded.origins["limits.hygiene"] == Origin(Layer.REPOSITORY, "redfirst.toml", 2)
    assert loaded.origins["limits.seam"] == Origin(Layer.USER, user_file, 2)
    assert loaded.origins["limits.reask"] == Origin(Layer.ENVIRONMENT, "REDFIRST_LIMITS__REASK")
    assert loaded.origins["limits.cosmetic"] == Origin(Layer.FLAG, "--set limits.cosmetic")


def test_a_default_for_all_never_overrides_what_a_role_says_itself_and_it_is_said(tmp_path: Path) -> None:
    loaded = read(
        tmp_path,
        repository='[agents.check]\ntimeout_s = 5\n[agents.simplify]\nbackend = "off"\n',
        user="[agents]\ntimeout_s = 60\n[agents.make]\nbackend = 'human'\n",
        flags=Flags.parse(["agents.backend=scripted", "agents.model=small"], ["make=claude"]),
    )
    seconds = {role: loaded.config.agent(role).timeout_s for role in (Role.CHECK, Role.TEST)}
    assert seconds == {Role.CHECK: 5, Role.TEST: 60}
    backends = {role.value: loaded.config.agent(role).backend.value for role in Role}
    assert (backends["simplify"], backends["make"], backends["check"]) == ("off", "claude", "scripted")
    assert without_effect(loaded) == (
        "--set agents.backend has no effect on @simplify, which has its own backend (redfirst.toml:4)",
        "--set agents.backend has no effect on @make, which has its own backend (--agent make)",
    )


def test_later_flags_win_over_earlier_ones_key_by_key_however_they_are_spelled(tmp_path: Path) -> None:
    earlier = Flags.parse(["limits.seam=1", "limits.reask=2", 'agents."make".backend=claude'], ["check=human"])
    later = Flags.parse(["limits.reask=3", "agents.check.backend=claude"], ["make=off"])
    both = later.over(earlier)
    assert both == Flags({"limits.seam": "1", "limits.reask": "3", "agents.check.backend": "claude"}, {"make": "off"})
    anchored = Flags.parse(["agents.script=a.yaml", 'agents.read=["b"]', "limits.seam=1"]).anchored(tmp_path)
    here = Path.cwd()
    assert anchored.values == {
        "agents.script": str(here / "a.yaml"),
        "agents.read": json.dumps([str(here / "b")]),
        "limits.seam": "1",
    }


def test_pm_keeps_its_backend_when_all_agents_get_another(tmp_path: Path) -> None:
    config = read(
        tmp_path, repository='[agents.pm]\nbackend = "command"\n', user='[agents]\nbackend = "scripted"\n'
    ).config
    assert config.agent(Role.PM).backend is Backend.COMMAND
    assert config.agent(Role.TEST).backend is Backend.SCRIPTED


def test_variables_for_agents_are_merged_one_by_one(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        repository='[agents.env]\nA = "repo"\nB = "repo"\n[agents.check.env]\nA = "check"\nC = "check"\n',
        user='[agents.env]\nB = "user"\n',
        environ={"REDFIRST_AGENTS__CHECK__ENV__My_Key__2": "x"},
    ).config
    assert config.agent(Role.CHECK).env == {"A": "check", "B": "user", "C": "check", "My_Key__2": "x"}
    assert config.agent(Role.MAKE).env == {"A": "repo", "B": "user"}


@pytest.mark.parametrize("name", ["PATH", "HOME", "PYTHONPATH", "LD_PRELOAD", "REDFIRST_X", "GIT_DIR", "a b", ""])
def test_a_variable_that_a_measurement_sets_itself_is_refused_without_its_value(tmp_path: Path, name: str) -> None:
    error = refused(tmp_path, user=f'[toolchains.pytest.env]\n"{name}" = "opaque-31337"\n')
    assert error.pointer == f"/toolchains/pytest/env/{name}"
    assert name in error.message
    assert "31337" not in error.message + str(error.details)


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ('["env", "TZ=31337", "A=1", "python", "-m", "pytest"]', "TZ, A"),
        ('["FOO=31337", "pytest"]', "FOO"),
        ('["FOO=31337 pytest"]', "FOO"),
        ('["dotenv", "run", "--", "pytest"]', "dotenv"),
    ],
)
def test_a_command_whose_variables_would_be_lost_is_refused_with_their_own_table(
    tmp_path: Path, command: str, names: str
) -> None:
    error = refused(tmp_path, user=f"[toolchains.pytest]\ncommand = {command}\n")
    assert error.pointer == "/toolchains/pytest/command"
    assert f"({names})" in error.message
    assert "[toolchains.pytest] env" in error.message
    assert "31337" not in error.message + str(error.details)


def test_an_unknown_key_names_its_place_the_accepted_words_and_the_likely_one(tmp_path: Path) -> None:
    error = refused(tmp_path, repository='sandbox = "auto"\n\n[limits]\nplan_reviews = 3\n')
    assert (error.path, error.pointer) == ("redfirst.toml", "/limits/plan_reviews")
    assert error.message.startswith(
        'redfirst.toml:4: unknown key "plan_reviews" in [limits]. Did you mean "plan_review"? Accepted: plan_review, '
    )


def test_a_word_that_is_not_accepted_names_the_accepted_ones(tmp_path: Path) -> None:
    error = refused(tmp_path, user='[agents.check]\nnetwork = "modle"\n')
    assert error.pointer == "/agents/check/network"
    assert 'agents.check.network: "modle" is not accepted. Did you mean "model"?' in error.message
    assert error.message.endswith("Accepted: none, model, open.")


def test_all_problems_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    error = refused(tmp_path, repository='sandbox = "on"\nbase = 3\n')
    assert len(error.message.splitlines()) == 2
    problems = cast("list[dict[str, str]]", error.details["problems"])
    assert [problem["pointer"] for problem in problems] == ["/sandbox", "/base"]


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ('[agents]\ntimeout_s = "900"', "/agents/timeout_s"),
        ("[agents]\ntimeout_s = 0", "/agents/timeout_s"),
        ('[agents]\nargv = "python3 bot.py"', "/agents/argv"),
        ("[agents.check]\nargv = []", "/agents/check/argv"),
        ("[limits]\nplan_review = 0", "/limits/plan_review"),
        ("[limits]\nhygiene = -1", "/limits/hygiene"),
        ("[limits]\nhuman = 3", "/limits/human"),
        ("[limits]\nseam = true", "/limits/seam"),
        ("[budget]\ncost_usd = 0", "/budget/cost_usd"),
        ("[budget]\ncost_usd = nan", "/budget/cost_usd"),
        ("[budget]\ncost_usd = 2026-11-20", "/budget/cost_usd"),
        ('[stub_first]\npytest = "yes"', "/stub_first/pytest"),
        ("[agents.env]\nA = 1", "/agents/env/A"),
        ('agents = "claude"', "/agents"),
        ("[toolchains.jest]", "/toolchains/jest"),
        ("[checks]\nfix = [[]]", "/checks/fix/0"),
        ('[checks]\nfix = ["ruff"]', "/checks/fix/0"),
        ("[agents.chekc]", "/agents/chekc"),
        ('"a/b~c" = 1', "/a~1b~0c"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_pointer(tmp_path: Path, text: str, pointer: str) -> None:
    assert refused(tmp_path, repository=text).pointer == pointer


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[agents.check]\nbackend = "off"\n', '"off" plays simplify only'),
        ('[agents]\nbackend = "off"\n', '"off" plays simplify only'),
        ('[agents.make]\nbackend = "builtin"\n', '"builtin" plays pm only'),
    ],
)
def test_a_backend_for_one_role_is_refused_for_the_others(tmp_path: Path, text: str, message: str) -> None:
    assert message in refused(tmp_path, repository=text).message


def test_an_unknown_variable_with_our_prefix_names_a_near_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match='Did you mean "REDFIRST_BUDGET__COST_USD"') as caught:
        read(tmp_path, environ={"REDFIRST_BUDGET_COST_USD": "3"})
    assert caught.value.reason is Reason.CONFIG


def test_a_variable_that_names_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="REDFIRST_AGENTS"):
        read(tmp_path, environ={"REDFIRST_AGENTS": "{}"})


def test_variables_give_words_without_quotes_and_other_values_as_toml(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        environ={
            "REDFIRST_SANDBOX": "none",
            "REDFIRST_BASE": "2026",
            "REDFIRST_BUDGET__COST_USD": "7",
            "REDFIRST_STUB_FIRST__PYTEST": "true",
            "REDFIRST_AGENTS__MAKE__ARGV": '["bot", "--role=make"]',
            "REDFIRST_FINAL_REVIEW__ON_BLOCKERS": "park",
        },
    ).config
    assert config.sandbox is BoxMode.NONE
    assert config.base == "2026"
    assert config.budget.cost_usd == 7
    assert config.stub_first.holds_for("pytest") is True
    assert config.agent(Role.MAKE).argv == ("bot", "--role=make")
    assert config.final_review.on_blockers is OnBlockers.PARK


@pytest.mark.parametrize("text", ["yes", "", "1\nsandbox = 'none'", "[1"])
def test_a_variable_that_is_no_toml_value_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match="not a TOML value") as caught:
        read(tmp_path, environ={"REDFIRST_STUB_FIRST__PYTEST": text})
    assert caught.value.path == "REDFIRST_STUB_FIRST__PYTEST"


def test_flags_set_keys_and_backends(tmp_path: Path) -> None:
    flags = Flags.parse(["agents.script=~/a=b.yaml", "agents.env.A=1=2"], ["simplify=off", "test=scripted"])
    config = read(tmp_path, flags=flags).config
    assert config.agent(Role.SIMPLIFY).backend is Backend.OFF
    assert config.agent(Role.TEST).script == str(tmp_path / "home" / "a=b.yaml")
    assert config.agent(Role.TEST).env == {"A": "1=2"}


def test_a_flag_without_equals_is_a_usage_error() -> None:
    with pytest.raises(UserError) as caught:
        Flags.parse(agents=["check"])
    assert caught.value.reason is Reason.USAGE


@pytest.mark.parametrize(
    ("flags", "near"),
    [
        (Flags(values={"limit.seam": "1"}), "limits.seam"),
        (Flags(values={"limits.foo": "1"}), None),
        (Flags(values={"limits.cost_usd": "1"}), "budget.cost_usd"),
        (Flags(agents={"tests": "command"}), "test"),
    ],
)
def test_a_flag_for_an_unknown_key_or_role_names_a_near_one(tmp_path: Path, flags: Flags, near: str | None) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, flags=flags)
    assert caught.value.details["did_you_mean"] == near


def test_relative_folders_lie_beside_the_file_that_names_them(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        repository='[agents.make]\nread = ["bots", "/opt/bot"]\n',
        user='[agents.test]\nread = ["bots", "~/bots"]\n',
    ).config
    assert config.agent(Role.MAKE).read == (str(tmp_path / "repo" / "bots"), "/opt/bot")
    user_bots = (str(tmp_path / "xdg" / "redfirst" / "bots"), str(tmp_path / "home" / "bots"))
    assert config.agent(Role.TEST).read == user_bots


@pytest.mark.parametrize(
    ("text", "missing"),
    [("", "argv"), ('[agents]\nbackend = "scripted"', "script"), ('[agents.make]\nargv = ["bot"]', "argv")],
)
def test_a_run_without_configured_agents_is_refused(tmp_path: Path, text: str, missing: str) -> None:
    with pytest.raises(UserError) as caught:
        require_agents(read(tmp_path, user=text))
    assert caught.value.details["missing"] == missing


def test_values_repeat_nothing_that_a_role_inherits(tmp_path: Path) -> None:
    values = read(tmp_path, user="[agents.make]\ntimeout_s = 5\n").values()
    assert {key for key in values if key.startswith(("agents.make", "agents.pm"))} == {
        "agents.make.timeout_s",
        "agents.pm.backend",
    }
    assert values["budget.cost_usd"] is None


def test_a_backend_without_a_role_is_all_roles_but_those_that_are_named(tmp_path: Path) -> None:
    config = read(tmp_path, flags=Flags.parse(agents=["check=claude", "human"])).config
    assert {role: config.agent(role).backend for role in Role} == {
        **dict.fromkeys(Role, Backend.HUMAN),
        Role.CHECK: Backend.CLAUDE,
    }


def test_a_word_without_a_role_that_is_no_backend_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="humen"):
        read(tmp_path, flags=Flags.parse(agents=["humen"]))


@pytest.mark.parametrize(
    ("flags", "simplify"), [(["human"], Backend.OFF), (["human", "simplify=claude"], Backend.CLAUDE)]
)
def test_a_backend_for_all_roles_brings_back_none_that_is_off_unless_it_is_named(
    tmp_path: Path, flags: list[str], simplify: Backend
) -> None:
    config = read(tmp_path, user='[agents.simplify]\nbackend = "off"\n', flags=Flags.parse(agents=flags)).config
    assert (config.agent(Role.SIMPLIFY).backend, config.agent(Role.MAKE).backend) == (simplify, Backend.HUMAN)


def test_a_later_backend_for_all_roles_takes_the_place_of_earlier_ones(tmp_path: Path) -> None:
    earlier = Flags.parse(["agents.test.backend=claude"], ["make=claude", "codex"])
    config = read(tmp_path, flags=Flags.parse(agents=["human"]).over(earlier)).config
    assert {config.agent(role).backend for role in Role} == {Backend.HUMAN}


def test_where_the_issues_are_the_repository_says_alone(tmp_path: Path) -> None:
    text = '[tracker]\nfolder = "issues"\n'
    assert "counts in the repository's own file alone" in refused(tmp_path, user=text).message
    (tmp_path / "another").mkdir()
    assert read(tmp_path / "another", repository=text).config.tracker.folder == "issues"


def test_the_top_is_a_folder_too_and_a_fault_names_the_key_alone(tmp_path: Path) -> None:
    found = read(tmp_path, user='[toolchains.pytest]\nfolder = "."\n')
    assert found.config.toolchains.settings_of("pytest").folder == "."
    (tmp_path / "another").mkdir()
    told = refused(tmp_path / "another", user='[toolchains.pytest]\nfolder = "../web"\n').message
    assert "toolchains.pytest.folder: " in told
    assert "function-" not in told


@pytest.mark.parametrize("folder", ["", "..", "a/b", "/etc", ".git", ".workflow"])
def test_the_issues_lie_in_a_folder_at_the_top(tmp_path: Path, folder: str) -> None:
    text = f'[tracker]\nfolder = "{folder}"\n'
    assert refused(tmp_path, repository=text).pointer == "/tracker/folder"
    (tmp_path / "redfirst.toml").write_text(text)
    assert tracker_folder(tmp_path) == "TODO"
    with pytest.raises(UserError, match=r"redfirst\.toml: tracker\.folder: ") as caught:
        tracker_folder(tmp_path, or_refuse=True)
    assert caught.value.pointer == "/tracker/folder"
