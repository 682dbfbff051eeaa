"""Recipes of a stranger: what is wrong is said, nothing is run, and what is sound beside them can still be used."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest
from kit import make_project

from pipeline.matrix.recipes.reading import LARGEST_STEPS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

BOMB: Final = "name: bomb\na: &a [x, x]\nb: &b [*a, *a]\nsteps: [*b]\n"
MANY: Final = "name: many\nsteps:\n" + "".join(f"  - {{id: s{n}, gate: ask}}\n" for n in range(LARGEST_STEPS + 1))
PHASES: Final = "name: {0}\nextends: builtin:quick\nedits: [{{change: final, set: {{review: []}}}}]\n"
HOSTILE: Final = {
    "bomb": (BOMB, "not_yaml"),
    "many": (MANY, "too_many_steps"),
    "itself": ("name: itself\nextends: itself\n", "include_cycle"),
    "deep": ("name: deep\nsteps: " + "[" * 5_000, "not_yaml"),
    "tag": ("name: tag\nsteps: !!python/object/apply:os.system [id]\n", "not_yaml"),
    "unseen": (PHASES.format("unseen"), "unreviewed_writer"),
    "reader": ("name: reader\nsteps: [{id: a, agent: explore, prompt: p, write_set: [x]}]\n", "reader_writes"),
    "out": ("name: out\nsteps: [{id: a, agent: make, prompt: p, write_set: [../x]}]\n", "bad_pattern"),
    "option": (
        "name: option\ninputs: [{name: x}]\nsteps: [{id: a, run: [git, '{{inputs.x}}']}]\n",
        "looks_like_option",
    ),
    "shown": ('name: shown\nsteps: [{id: a, agent: "\\e[31mchek", prompt: p}]\n', "unknown_role"),
}


def test_check_29_what_is_hostile_is_refused_with_its_reason_and_nothing_is_begun(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({f".redfirst/recipes/{name}.yaml": text for name, (text, _) in HOSTILE.items()})
    folder = project.root / ".redfirst" / "recipes"
    (folder / "bytes.yaml").write_bytes(b"name: \xff\n")
    (folder / "link.yaml").symlink_to("/etc/passwd")
    project.commit("gifts")
    project.use_script([])
    before = project.git("rev-parse", "HEAD")
    linted = project.redfirst("recipes", "lint", *HOSTILE, "--json")
    for (name, (_, rule)), file in zip(HOSTILE.items(), json.loads(linted.stdout)["files"], strict=True):
        assert rule in {problem["rule"] for problem in file["problems"]}, name
    for name in ("bomb", "unseen", "shown"):
        refused = json.loads(project.redfirst("run", "GAL-1", "--recipe", name, "--json").stdout)["error"]
        rules = {problem["rule"] for problem in refused["details"]["problems"]}
        assert (refused["kind"], HOSTILE[name][1] in rules) == ("recipe_invalid", True), (name, refused)
        assert "\x1b" not in refused["message"]
    listed = json.loads(project.redfirst("recipes", "list", "--json").stdout)["recipes"]
    theirs = {one["name"]: one["ok"] for one in listed if one["origin"] == "repository"}
    assert theirs == dict.fromkeys([*HOSTILE, "bytes"], False), "a link is no recipe"
    assert "passwd" not in project.redfirst("run", "GAL-1", "--recipe", "link").stdout
    assert project.redfirst("recipes", "show", "builtin:quick").returncode == 0
    assert project.untouched_since(before)
    assert not (project.root / ".workflow").exists()
