"""The documentation of agents is true: its table, its versions, its configuration, its commands and its links."""

from __future__ import annotations

import re
import shlex
import tomllib
from typing import TYPE_CHECKING, Final, cast

import pytest
from house.documents import (
    DESIGN,
    DOCUMENTS,
    PAGES,
    ROOT,
    agents_in,
    command_of,
    commands,
    headings,
    links,
    rows,
    tomls,
)
from typer.core import TyperGroup

from pipeline.agents.backends import BACKENDS
from pipeline.agents.backends.acp_profiles import PRODUCTS
from pipeline.agents.backends.claude import CLAUDE
from pipeline.agents.backends.codex import CODEX
from pipeline.agents.dispatch.agent_choice import choices
from pipeline.config.agents import Backend, Profile
from pipeline.config.layers import Flags
from pipeline.config.load import load, require_agents
from pipeline.config.providers import BUILTIN
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from pathlib import Path

    from house.documents import Row

ROWS: Final = rows()
TESTED: Final = {
    ("claude", None): CLAUDE.tested,
    ("codex", None): CODEX.tested,
    **{("acp", profile.value): product.program.tested for profile, product in PRODUCTS.items()},
}


def floor_of_the_extra() -> str:
    (wanted,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["api"]
    return " ".join(re.findall(r"^([\w-]+)\[.*\]>=([\d.]+)", wanted)[0])


def test_every_way_to_ask_an_agent_has_a_row() -> None:
    ways = {(name, None) for name in BACKENDS if name != Backend.ACP} | {("acp", profile.value) for profile in Profile}
    assert {row.product for row in ROWS} == ways
    assert len(ROWS) == len(ways)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(filter(None, row.product)))
def test_every_agent_has_a_page_with_its_lines_of_configuration(row: Row) -> None:
    page = PAGES / row.page.partition("#")[0]
    said = {(table.get("backend"), table.get("profile")) for block in tomls(page) for table in agents_in(block)}
    assert row.product in said


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(filter(None, row.product)))
def test_the_tested_version_is_the_one_that_the_tests_drive(row: Row) -> None:
    page = (PAGES / row.page.partition("#")[0]).read_text(encoding="utf-8")
    tested = floor_of_the_extra() if row.backend == Backend.API else TESTED.get(row.product, "")
    assert row.version == tested
    assert not tested or f"Tested version: {tested}." in page


def test_the_script_installs_the_tested_versions() -> None:
    script = (ROOT / "scripts/agent-clis.sh").read_text(encoding="utf-8")
    installed = dict(re.findall(r"^([a-z-]+) \S+ (\d[\w.+-]*) \S+$", script, re.MULTILINE))
    programs = {CLAUDE.name: CLAUDE.tested, CODEX.name: CODEX.tested}
    programs |= {product.program.name: product.program.tested for product in PRODUCTS.values()}
    assert installed == programs


def test_the_commands_that_install_are_those_that_the_program_names() -> None:
    told = " ".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    for install in (CLAUDE.install, CODEX.install, *(product.program.install for product in PRODUCTS.values())):
        assert f"`{install}`" in told


def test_every_block_of_configuration_holds(tmp_path: Path) -> None:
    (tmp_path / "redfirst").mkdir()
    for document, block in ((page, block) for page in DOCUMENTS for block in tomls(page)):
        (tmp_path / "redfirst" / "config.toml").write_text(block, encoding="utf-8")
        loaded = load(tmp_path, environ={"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)})
        if "backend" in tomllib.loads(block).get("agents", {}):
            require_agents(loaded)
            assert all(choices(loaded.config, role) for role in Role), document


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_command_is_one_that_the_program_understands(document: Path, tmp_path: Path) -> None:
    """Parsed by the program itself; one that a sentence names without any words must be there."""
    for line in dict.fromkeys(commands(document)):
        command, words = command_of(shlex.split(line, comments=True)[1:])
        assert not isinstance(command, TyperGroup) or words, line
        said = command.make_context(line, words).params if words else {}
        one_for_each_role = cast("list[str] | None", said.get("agent")) if "values" in said else None
        flags = Flags.parse(said.get("values") or (), one_for_each_role or ())
        load(tmp_path, environ={"HOME": str(tmp_path)}, flags=flags)


def test_every_link_leads_somewhere() -> None:
    for document, target in ((page, link) for page in (*DOCUMENTS, DESIGN) for link in links(page)):
        path, _, anchor = target.partition("#")
        there = (document.parent / path).resolve() if path else document
        assert there.is_file(), (document, target)
        assert not anchor or anchor in headings(there), (document, target)


def test_the_built_in_services_are_told_as_they_are() -> None:
    page = (PAGES / "README.md").read_text(encoding="utf-8")
    for name, table in BUILTIN.items():
        credential = f"`{table.credential_env}`" if table.credential_env else "none"
        assert f"| `{name}` | {credential} | {', '.join(table.api or ())} |" in page
