"""The API on a folder of small models, one a module of tests; a browser, and in it the page of a module's `server`."""

import shutil
from pathlib import Path

import pytest
from helpers import REFERENCE
from starlette.testclient import TestClient

from distill.networks import saved
from distill.web import api
from distill.web.opponents import Opponents
from tests import pages
from tests.api_helpers import URL


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    core = pages.small_network()
    saved.write(core, folder / "small" / "saved_model" / "1")
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


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """With `pillar` as somebody's `cnn`, which answers without TensorFlow; some modules have their own."""
    folder: Path = tmp_path_factory.mktemp("models")
    shutil.copytree(REFERENCE / "pillar", folder / "cnn", ignore=shutil.ignore_patterns("evaluation"))
    with pages.serving("--models", folder, "--max-simulations", "1000") as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with pages.browser() as running:
        yield running


@pytest.fixture
def page(browser, server):
    with pages.open_page(browser, server) as opened:
        yield opened
