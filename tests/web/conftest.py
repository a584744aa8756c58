"""The API on a folder of small models, one a module of tests; the page of a module's `server`."""

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
def server(request, tmp_path_factory):
    """With the flags `SERVER` of the module, or else `pillar` as somebody's `cnn`, which needs no TensorFlow."""
    folder: Path = tmp_path_factory.mktemp("models")
    flags = getattr(request.module, "SERVER", ("--models", folder, "--max-simulations", "1000"))
    if folder in flags:
        shutil.copytree(REFERENCE / "pillar", folder / "cnn", ignore=shutil.ignore_patterns("evaluation"))
    with pages.serving(*flags) as address:
        yield address


@pytest.fixture
def page(request, browser, server):
    """With all players, unless the module has `MORE = False`."""
    with pages.open_page(browser, server, more=getattr(request.module, "MORE", True)) as opened:
        yield opened
