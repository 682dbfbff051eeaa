"""Chosen tests, limits, the box, compiled code that is kept, and workspaces."""

from __future__ import annotations

import os
import subprocess
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from languages.direct import write
from languages.modules import MANIFEST, check_types, environment, measure, needs_go, seeded

from pipeline.judge.evidence.compare import expectations, judge_green
from pipeline.judge.evidence.observation import Ended, Observation, RunState
from pipeline.process import Mount
from pipeline.testing.languages.protocol import Cache, Selection

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.sandbox.boxes.bubblewrap import Bubblewrap

pytestmark = [pytest.mark.slow, needs_go]

GREET = 'package greet\n\nfunc Greet(name string) string {\n    return "Hello, " + name\n}\n'
OLD = """package greet

import "testing"

func TestGreet(t *testing.T) {
    for name, want := range map[string]string{"a": "Hello, a", "b": "Hello, b"} {
        t.Run(name, func(t *testing.T) {
            if got := Greet(name); got != want {
                t.Errorf("got %q, want %q", got, want)
            }
        })
    }
}
"""
NEW = """
func TestNobody(t *testing.T) {
    if got := Greet(""); got != "" {
        t.Errorf("got %q", got)
    }
}
"""
SLOW = """package slow

import (
    "testing"
    "time"
)

func TestHangs(t *testing.T) {
    t.Run("at first not", func(t *testing.T) {})
    t.Run("then", func(t *testing.T) { time.Sleep(time.Hour) })
}

func TestEnds(t *testing.T) {}
"""
START = {"go.mod": MANIFEST, "greet.go": GREET, "greet_test.go": OLD}


def ran(seen: Observation) -> dict[str, Ended]:
    return {entry: record.outcome for entry, record in seen.records.items() if record.outcome is not None}


@pytest.mark.broad
def test_only_chosen_tests_run_and_all_are_listed(tmp_path: Path) -> None:
    project = write(tmp_path / "project", {**START, "slow/slow_test.go": SLOW})
    known = [".::TestGreet", "slow::TestEnds", "slow::TestHangs"]
    kept = seeded(tmp_path / "kept")
    listed = measure(project, Selection.nothing(), cache=kept)
    assert (sorted(listed.records), ran(listed)) == (known, {})
    by_file = measure(project, Selection(files=frozenset({"greet_test.go"})), cache=kept)
    subtests = [".::TestGreet/a", ".::TestGreet/b"]
    assert ran(by_file) == dict.fromkeys([known[0], *subtests], Ended.PASSED)
    # what a run has shown of subtests is listed from then on, also where it is not run
    by_id = measure(project, Selection(ids=frozenset({"slow::TestEnds"})), cache=kept)
    assert (sorted(by_id.records), ran(by_id)) == (sorted([*known, *subtests]), {"slow::TestEnds": Ended.PASSED})
    assert by_id.command == ("go", "test", "./...", "-run", "^(TestEnds)$")
    one = measure(project, Selection(ids=frozenset({".::TestGreet/b"})), cache=kept)
    assert ran(one) == {".::TestGreet/b": Ended.PASSED}
    # another body has other subtests, until it is run
    write(project, {"greet_test.go": OLD.replace('"b": "Hello, b"', '"c": "Hello, c"')})
    changed = measure(project, Selection.nothing(), cache=kept)
    assert sorted(changed.records) == known


@pytest.mark.broad
def test_a_test_that_fails_early_loses_none_of_its_subtests(tmp_path: Path) -> None:
    project = write(tmp_path / "project", START)
    kept = seeded(tmp_path / "kept")
    baseline = measure(project, cache=kept)
    write(project, {"greet.go": GREET.replace('return "', 'panic("no"); return "')})
    broken = measure(project, cache=kept)
    assert set(broken.records) == set(baseline.records)
    verdict = judge_green(None, broken, expectations(baseline))
    assert set(verdict.regressions) == set(baseline.records)
    assert verdict.missing == ()


@pytest.mark.broad
def test_each_limit_ends_a_run_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, {**START, "slow/slow_test.go": SLOW})
    one = measure(tmp_path, Selection(files=frozenset({"slow/slow_test.go"})), per_test_timeout_s=3)
    assert one.state is RunState.COMPLETE
    # of the subtest that was over nothing is known: its result is printed when the test around it ends
    assert ran(one) == {
        "slow::TestHangs": Ended.TIMED_OUT, "slow::TestHangs/then": Ended.TIMED_OUT, "slow::TestEnds": Ended.PASSED
    }  # fmt: skip
    whole = measure(tmp_path, Selection(ids=frozenset({"slow::TestHangs"})), timeout_s=15)
    assert whole.state is RunState.TIMED_OUT
    hung = whole.records.get("slow::TestHangs")  # there is none where compiling took all of it
    assert hung is None or hung.outcome is Ended.TIMED_OUT


@pytest.mark.broad
def test_modules_of_a_workspace_and_packages_that_need_each_other(tmp_path: Path) -> None:
    inner = OLD.replace("package greet", "package inner").replace("Greet(n", "Polite(n")
    files = {
        "go.work": "go 1.19\n\nuse (\n    ./greet\n    ./tools/polite\n)\n",
        **{f"greet/{name}": text for name, text in START.items()},
        "tools/polite/go.mod": "module example.com/polite\n\ngo 1.19\n\nrequire example.com/greet v0.0.0\n",
        "tools/polite/inner/inner.go": 'package inner\n\nimport "example.com/greet"\n\n'
        "func Polite(name string) string { return greet.Greet(name) }\n",
        "tools/polite/inner/inner_test.go": inner,
        "tools/other/go.mod": "module example.com/other\n\ngo 1.19\n",
        "tools/other/other_test.go": 'package other\n\nimport "testing"\n\nfunc TestNot(t *testing.T) {}\n',
    }  # fmt: skip
    seen = measure(write(tmp_path, files), trace=True)
    assert {entry for entry in ran(seen) if "/" not in entry.partition("::")[2]} == {
        "greet::TestGreet", "tools/polite/inner::TestGreet"
    }  # fmt: skip
    reach = seen.records["tools/polite/inner::TestGreet"].reach
    assert reach is not None
    assert set(reach.functions) == {"tools/polite/inner/inner.go::Polite", "greet/greet.go::Greet"}


@pytest.mark.broad
def test_build_flags_of_the_configured_command_are_kept(tmp_path: Path) -> None:
    tagged = "//go:build extra\n\n" + OLD.replace("TestGreet", "TestExtra")
    asks = 'package greet\n\nimport (\n    "flag"\n    "testing"\n)\n\nvar word = flag.String("word", "", "")\n\n'
    asks += (
        "func TestWord(t *testing.T) {\n    if *word != `x` || !testing.Short() {\n        t.Fatal(*word)\n    }\n}\n"
    )
    write(tmp_path, {**START, "extra_test.go": tagged, "word_test.go": asks})
    plain = measure(tmp_path)
    assert ".::TestExtra" not in plain.records
    assert plain.records[".::TestWord"].outcome is Ended.FAILED
    chosen = replace(
        environment(), command=(environment().command[0], "test", "-tags", "extra", "-short", ".", "-args", "-word=x")
    )
    seen = measure(tmp_path, env=chosen)
    assert seen.records[".::TestExtra"].outcome is Ended.PASSED
    assert seen.records[".::TestWord"].outcome is Ended.PASSED


def test_the_command_that_is_told_has_the_projects_options(tmp_path: Path) -> None:
    write(tmp_path, {"go.mod": MANIFEST, "a.go": "package greet\n"})
    told = measure(
        tmp_path, env=replace(environment(), command=(environment().command[0], "test", "-tags", "x", "-args", "y"))
    ).command
    assert told == ("go", "test", "-tags", "x", "./...", "-args", "y")


@pytest.mark.broad
def test_a_data_race_is_where_it_happened(tmp_path: Path) -> None:
    if environment().variables["CGO_ENABLED"] == "0":
        pytest.skip("the race detector needs a C compiler")
    racing = "package greet\n\nvar n int\n\nfunc Count() { n++ }\n"
    test = (
        'package greet\n\nimport (\n    "sync"\n    "testing"\n)\n\nfunc TestRace(t *testing.T) {\n'
        "    var all sync.WaitGroup\n    for i := 0; i < 8; i++ {\n        all.Add(1)\n"
        "        go func() { defer all.Done(); Count() }()\n    }\n    all.Wait()\n}\n"
    )
    write(tmp_path, {"go.mod": MANIFEST, "count.go": racing, "count_test.go": test})
    seen = measure(tmp_path, env=replace(environment(), command=(environment().command[0], "test", "-race")))
    record = seen.records[".::TestRace"]
    assert record.outcome is Ended.FAILED
    assert record.fault is not None
    assert record.fault.raised.kind == "data race"
    assert record.fault.last_own_frame is not None
    assert (record.fault.last_own_frame.path, record.fault.last_own_frame.function) == ("count.go", "Count")


@pytest.mark.broad
def test_a_measurement_in_the_box_equals_one_outside(tmp_path: Path, box: Bubblewrap) -> None:
    spoil = """package greet

import (
    "os"
    "testing"
)

func TestSpoils(t *testing.T) {
    if err := os.WriteFile(os.Args[0]+".new", nil, 0o644); err != nil {
        t.Fatal(err)
    }
}
"""
    write(tmp_path, {**START, "greet_test.go": OLD + NEW, "spoil/spoil_test.go": spoil})
    spoilt = measure(tmp_path, Selection(files=frozenset({"spoil/spoil_test.go"})), box=box)
    assert spoilt.records["spoil::TestSpoils"].outcome is Ended.FAILED  # nothing changes what was compiled
    chosen = Selection(files=frozenset({"greet_test.go"}))
    inside, outside = measure(tmp_path, chosen, trace=True, box=box), measure(tmp_path, chosen, trace=True)
    assert inside.records == outside.records
    assert inside.files == outside.files
    assert inside.records[".::TestNobody"].outcome is Ended.FAILED
    assert check_types(tmp_path, box).collection_errors == ()


@pytest.mark.broad
def test_what_a_test_does_to_the_compilers_cache_is_gone_with_its_measurement(tmp_path: Path, box: Bubblewrap) -> None:
    poison = """package greet

import (
    "io/fs"
    "os"
    "path/filepath"
    "testing"
)

func TestPoisons(t *testing.T) {
    err := filepath.Walk(os.Getenv("GOCACHE"), func(path string, info fs.FileInfo, err error) error {
        if err == nil && info.Mode().IsRegular() {
            os.Remove(path)
        }
        return os.WriteFile(filepath.Join(os.Getenv("GOCACHE"), "README"), []byte("poison"), 0o644)
    })
    if err != nil {
        t.Fatal(err)
    }
}
"""
    project = write(tmp_path / "project", {**START, "poison_test.go": poison})
    kept = tmp_path / "kept"
    kept.mkdir()
    first = measure(project, cache=Cache(kept, warm=True), box=box)
    assert first.records[".::TestPoisons"].outcome is Ended.PASSED, first.tail
    files = {path: path.read_bytes() for path in (kept / "gocache").rglob("*") if path.is_file()}
    assert files
    assert b"poison" not in files.values()
    again = measure(project, cache=Cache(kept), box=box)
    assert again.records[".::TestGreet"].outcome is Ended.PASSED
    assert {path: path.read_bytes() for path in files} == files


@pytest.mark.broad
def test_fetched_modules_are_used_and_not_changed(tmp_path: Path, box: Bubblewrap) -> None:
    """A proxy of files stands for the network of a user who fetched the module before."""
    proxy = tmp_path / "proxy" / "example.org" / "part" / "@v"
    proxy.mkdir(parents=True)
    with zipfile.ZipFile(proxy / "v1.0.0.zip", "w") as archive:
        archive.writestr("example.org/part@v1.0.0/part.go", "package part\n\nfunc Part() int { return 3 }\n")
        archive.writestr("example.org/part@v1.0.0/go.mod", "module example.org/part\n")
    (proxy / "v1.0.0.mod").write_text("module example.org/part\n")
    (proxy / "v1.0.0.info").write_text('{"Version": "v1.0.0"}')
    (proxy / "list").write_text("v1.0.0\n")
    project = write(
        tmp_path / "project",
        {
            "go.mod": MANIFEST + "\nrequire example.org/part v1.0.0\n",
            "greet_test.go": 'package greet\n\nimport (\n    "testing"\n\n    "example.org/part"\n)\n\n'
            "func TestPart(t *testing.T) {\n    if part.Part() != 3 {\n        t.Fatal(`part`)\n    }\n}\n",
        },
    )
    fetched = tmp_path / "mod"
    user = {
        "GOPROXY": f"file://{tmp_path / 'proxy'}",
        "GOSUMDB": "off",
        "GOMODCACHE": str(fetched),
        "GOFLAGS": "-mod=mod",
    }
    go = environment().command[0]
    subprocess.run([go, "mod", "download", "all"], cwd=project, env={**os.environ, **user}, check=True)
    env = environment()
    others = tuple(mount for mount in env.mounts if str(mount.target) != env.variables["GOMODCACHE"])
    with_it = replace(
        env, mounts=(*others, Mount(fetched, fetched)), variables={**env.variables, "GOMODCACHE": str(fetched)}
    )
    seen = measure(project, box=box, env=with_it)
    subprocess.run(["chmod", "-R", "u+w", str(fetched)], check=True)
    assert ran(seen) == {".::TestPart": Ended.PASSED}, (seen.detail, seen.collection_errors, seen.tail)


def test_types_are_checked_without_running_anything(tmp_path: Path) -> None:
    write(tmp_path, {**START, "cmd/main.go": "package main\n\nfunc main() {}\n"})
    assert check_types(tmp_path).collection_errors == ()
    write(tmp_path, {"cmd/main.go": 'package main\n\nfunc main() { var n int = "x" }\n'})
    seen = check_types(tmp_path)
    assert [(error.path, error.fault.raised.kind) for error in seen.collection_errors] == [("cmd/main.go", "compile")]
    assert sorted(seen.records) == [".::TestGreet"]
    assert ran(seen) == {}
