"""Python that changes what is not its own is told: functions of other modules, and files of tests."""

from __future__ import annotations

import pytest

from pipeline.languages.sources.forgery import notes


def told(source: str, path: str = "src/app/core.py", own: tuple[str, ...] = ()) -> list[str]:
    found = notes(path, None, source.encode(), own)
    return [note.partition(" ")[2].partition(";")[0].partition(" (")[0] for note in found]


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import ast\nast.parse = print\n", "changes ast.parse"),
        ("import ast as a\na.parse = print\n", "changes ast.parse"),
        ("import pathlib\npathlib.Path.read_bytes = print\n", "changes pathlib.Path.read_bytes"),
        ("from pathlib import Path\nPath.read_bytes = print\n", "changes pathlib.Path.read_bytes"),
        ("from pathlib import Path\nP = Path\nP.read_bytes: object = print\n", "changes pathlib.Path.read_bytes"),
        ("def f():\n    from os import path\n    path.join, x = print, 1\n", "changes os.path.join"),
        ("import ast\ndel ast.parse\n", "changes ast.parse"),
        ("import ast\nfor ast.parse in [print]:\n    pass\n", "changes ast.parse"),
        ("import ast\nsetattr(ast, 'parse', print)\n", "changes ast.parse"),
        ("from pathlib import Path\ntype.__setattr__(Path, 'open', print)\n", "changes pathlib.Path.open"),
        ("import ast\nast.__dict__['parse'] = print\n", "changes ast.parse"),
        ("import ast\nvars(ast)['parse'] = print\n", "changes ast.parse"),
        ("import importlib\nimportlib.import_module('ast').parse = print\n", "changes ast.parse"),
        ("import numpy.testing\nnumpy.testing.assert_equal = print\n", "changes numpy.testing.assert_equal"),
        ("from requests import Session\nSession.get = print\n", "changes requests.Session.get"),
        ("import sys\nsys.addaudithook(print)\n", "uses sys.addaudithook"),
        ("from sys import monitoring\n", "uses sys.monitoring"),
        ("import os\nos.chdir('x')\n", "uses os.chdir"),
        ("import os\nos.environ['PY_IGNORE_IMPORTMISMATCH'] = '1'\n", "mentions PY_IGNORE_IMPORTMISMATCH"),
        ("import os\nos.rename('tests', 'away')\n", "calls rename on a path of tests"),
        (
            "from pathlib import Path\n(Path(__file__).parent / 'tests').rename('x')\n",
            "calls rename on a path of tests",
        ),
        ("import os\nopen(os.path.join(HERE, 'tests', 'a'), 'w')\n", "calls open on a path of tests"),
        (
            "import os\nplace = join(dirname(__file__), 'tests')\ninner = join(place, 'a')\nos.mkdir(inner)\n",
            "calls mkdir on a path of tests",
        ),
        ("import shutil\nshutil.rmtree('pkg/testdata')\n", "calls rmtree on a path of tests"),
    ],
)
def test_each_means_is_told_once(source: str, what: str) -> None:
    assert told(source) == [what]


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nsys.stdout = open('log')\nsys.path = [*sys.path, '.']\n",
        "from . import settings\nsettings.DEBUG = print\n",
        "from app import settings\nsettings.handler = print\n",
        "import openai\nopenai.api_key = 'x'\n",
        "from flask import g\ng.user = find()\n",
        "import ast\nast.parse('x').body = []\nself.ast = ast\nx = ast.parse\nx = 1\n",
        "import os\nos.environ['X'] = '1'\n",
        "name.replace('tests', 'x')\nnames.remove('tests')\nframe.rename(columns={'test': 'x'})\ntests.copy()\n",
        "import os\nread('tests')\nos.mkdir('out')\nopen('tests/a')\nopen('tests/a', 'rb')\n",
    ],
)
def test_honest_code_is_not(source: str) -> None:
    assert told(source) == []


def test_a_module_of_the_project_is_its_own_but_none_of_the_runner_is() -> None:
    source = "import settings, ast\nsettings.handler = print\nast.parse = print\n"
    assert told(source, own=("settings", "ast")) == ["changes ast.parse"]
    assert told(source) == ["changes settings.handler", "changes ast.parse"]
