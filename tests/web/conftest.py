"""The API on a folder of models, and the page of one server of this folder, for all tests."""

import shutil
from pathlib import Path

import pytest
from helpers import REFERENCE
from starlette.testclient import TestClient

from distill.web import api
from distill.web.opponents import Opponents
from tests import pages
from tests.api_helpers import URL


@pytest.fixture(scope="session")
def models(tmp_path_factory) -> Path:
    """The shipped `pillar` as a user's `small`, and once more below `reference/`; no test changes it."""
    folder = tmp_path_factory.mktemp("models")
    shutil.copytree(REFERENCE / "pillar", folder / "small", ignore=shutil.ignore_patterns("evaluation"))
    (folder / "reference").mkdir()
    (folder / "reference" / "shipped").symlink_to(folder / "small")
    (folder / "unfinished").mkdir()
    return folder


@pytest.fixture(scope="module")
def app(models):
    return api.application(Opponents([models], max_simulations=1000, workers=2))


@pytest.fixture(scope="module")
def client(app):
    return TestClient(app, base_url=URL)


@pytest.fixture(scope="session")
def server(models):
    """The address of `python -m distill.serve`, which Ctrl-C stops in the end; its networks need no TensorFlow."""
    with pages.serving("--models", models, "--max-simulations", "1000") as address:
        yield address


@pytest.fixture
def page(request, browser, server):
    """With all players, unless the module has `MORE = False`."""
    with pages.open_page(browser, server, more=getattr(request.module, "MORE", True)) as opened:
        yield opened
