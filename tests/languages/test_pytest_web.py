"""New addresses of web applications and new fields of declared models: their tests fail for the right reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.direct import context_of, files_of, measure, write

from pipeline.judge.evidence.classify import classify
from pipeline.judge.evidence.red_classes import RedClass, Symbol

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

MISMATCH, MISSING = RedClass.ASSERTION_MISMATCH, RedClass.MISSING_BEHAVIOR

FLASK = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "shop/__init__.py": "",
    "shop/web.py": """
        from flask import Flask

        app = Flask(__name__)
        """,
    "shop/models.py": """
        from pydantic import BaseModel, ConfigDict
        from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

        class Base(DeclarativeBase):
            pass

        class Row(Base):
            __tablename__ = "rows"
            id: Mapped[int] = mapped_column(primary_key=True)

        class Item(BaseModel):
            model_config = ConfigDict(extra="forbid")
        """,
    "tests/conftest.py": """
        import pytest
        from shop.web import app

        @pytest.fixture(scope="session")
        def made():
            return app

        @pytest.fixture
        def client(made):
            return made.test_client()
        """,
    "tests/test_new.py": """
        import unittest
        import flask
        import pytest
        from shop import models
        from shop.web import app

        other = flask.Flask("other")
        at_top = app.test_client()

        class Base(unittest.TestCase):
            def setUp(self):
                self.client = app.test_client()

        def helped():
            return at_top.get("/names")

        @pytest.fixture
        def answer():
            return app.test_client().get("/names")

        def test_fixtures_of_the_conftest(client):
            assert client.get("/names").status_code == 200

        def test_a_fixture_of_the_file(answer):
            assert answer.status_code == 200

        def test_a_name_of_the_file():
            assert at_top.get("/names").status_code == 200

        def test_a_helper_of_the_file():
            assert helped().status_code == 200

        class TestSetUp(Base):
            def test_in_a_class(self):
                self.assertEqual(self.client.get("/names").status_code, 200)

        def test_of_another_application():
            assert other.test_client().get("/names").status_code == 200

        def test_sqlalchemy_field():
            assert models.Row(note="x").note == "x"

        def test_pydantic_field():
            assert models.Item(note="x").note == "x"
        """,
}


def test_an_address_that_is_not_there_yet_is_looked_for_through_whatever_the_test_uses(tmp_path: Path) -> None:
    root = write(tmp_path, FLASK)
    observation = measure(root, trace=True)
    symbols = (Symbol("shop/models.py", "Row", new=False), Symbol("shop/models.py", "Item", new=False))
    context = context_of(observation, files_of(root) - {"tests/test_new.py"}, symbols=symbols)
    found = {one.last_name: classify(one, context) for one in observation.records.values()}
    looks = (
        "fixtures_of_the_conftest",
        "a_fixture_of_the_file",
        "a_name_of_the_file",
        "a_helper_of_the_file",
        "in_a_class",
    )
    assert {name.removeprefix("test_"): (one.cls, one.legal) for name, one in found.items()} == {
        **dict.fromkeys(looks, (MISMATCH, True)),
        **dict.fromkeys(("sqlalchemy_field", "pydantic_field"), (MISSING, True)),
        "of_another_application": (RedClass.STRUCTURAL, False),
    }, [one.message for one in found.values()]


DJANGO = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "shop/__init__.py": "",
    "shop/urls.py": "urlpatterns = []\n",
    "shop/models.py": """
        from django.db import models

        class Order(models.Model):
            name = models.CharField(max_length=9)
        """,
    "tests/conftest.py": """
        import django
        from django.conf import settings

        settings.configure(ROOT_URLCONF="shop.urls", INSTALLED_APPS=["shop"], ALLOWED_HOSTS=["*"])
        django.setup()
        """,
    "tests/urls.py": "urlpatterns = []\n",
    "tests/test_new.py": """
        from django.test import Client, SimpleTestCase, override_settings

        class TestNames(SimpleTestCase):
            def test_address(self):
                self.assertEqual(self.client.get("/names/").status_code, 200)

            @override_settings(ROOT_URLCONF="tests.urls")
            def test_address_of_the_tests(self):
                self.assertEqual(self.client.get("/names/").status_code, 200)

        def test_client():
            assert Client().get("/names/").status_code == 200

        def test_field():
            from shop.models import Order
            assert Order(note="x").note == "x"

        def test_nothing():
            one = 1
            assert one == 2
        """,
}


def test_an_address_of_django_is_looked_for_in_the_projects_table(tmp_path: Path) -> None:
    root = write(tmp_path, DJANGO)
    observation = measure(root, trace=True)
    order = Symbol("shop/models.py", "Order", new=False)
    context = context_of(observation, files_of(root) - {"tests/test_new.py"}, symbols=(order,))
    found = {one.last_name: classify(one, context) for one in observation.records.values()}
    assert {name.removeprefix("test_"): (one.cls, one.legal) for name, one in found.items()} == {
        **dict.fromkeys(("address", "client"), (MISMATCH, True)),
        "field": (MISSING, True),
        **dict.fromkeys(("address_of_the_tests", "nothing"), (RedClass.STRUCTURAL, False)),
    }, [one.message for one in found.values()]
