"""The page without a server, in headless Chromium against a plain file server: the browser's outputs are Python's,
nothing is asked of any other host, and a page that cannot be written leaves the older one. (What others put into a
folder: `test_run_folder`, `test_restart`.)
"""

import http.client
import io
import json
import re
import shutil
from unittest.mock import Mock

import numpy as np
import pytest
from helpers import FORMATS_SHIPPED, REFERENCE, SHIPPED

import distill
from distill import networks
from distill.common import UserError, file_hash, provenance
from distill.exporters import conversion, formats, static_page
from distill.networks import saved
from tests import pages

MODEL = REFERENCE / SHIPPED[0]
"""For what does not depend on the network."""
NAMES = pages.site_networks()
FIRST = "pillar"
"""The page's own network, which has a value head."""


@pytest.fixture(scope="module")
def address(site):
    """The page's address on a plain file server."""
    with pages.hosted(site.parents[1]) as host:
        yield f"{host}below/site/"


@pytest.fixture(scope="module")
def page(browser, address):
    with pages.open_page(browser, address) as opened:
        yield opened


@pytest.mark.parametrize("name", NAMES)
def test_the_browsers_answers_are_pythons(page, name):
    boards = conversion.check_boards(64)
    script = """async ([boards, name]) => {
      const { predict } = await import("./network.js");
      return predict(boards.map((board) => Int8Array.from(board)), name);
    }"""
    answers = page.evaluate(script, [boards.reshape(len(boards), -1).tolist(), name])
    if "onnx" in FORMATS_SHIPPED[name]:
        expected = saved.predict_with(saved.load_core(REFERENCE / name / "best.keras"))(boards)
    else:  # the page has it in 8 bits
        file = formats.FORMATS["onnx-int8"]
        expected = file.load(str(REFERENCE / name / "saved_model" / file.file))(boards)
    outputs = {output: np.array([answer[output] for answer in answers]) for output in expected}
    assert conversion.largest_difference(expected, outputs) <= conversion.TOLERANCE


def test_a_network_that_cannot_be_loaded_and_a_player_whom_the_page_does_not_have_are_named(browser, address):
    with pages.open_page(browser, address, ignore=("404",)) as page:
        script = (
            "async () => (await import('./network.js')).predict([new Int8Array(42)], 'gone').catch((e) => e.message)"
        )
        assert "The network gone cannot be loaded." in page.evaluate(script)
        script = "async (word) => (await import('./network.js')).opinion(word, '').catch((error) => error.message)"
        for word in ("nobody", f"{FIRST}@puct:0", f"{FIRST}@puct:9999", f"{FIRST}@sample"):
            assert page.evaluate(script, word) == f"There is no player “{word}” here."


def test_the_page_computes_networks_of_its_own_size_alone(tmp_path):
    """Its program has the sizes; ONNX Runtime computes the others."""
    for arguments, file in (({}, "pillar.f32"), ({"blocks": 1}, "pillar.onnx")):
        core = networks.build("pillar", True, **arguments)
        facts = {"arch": "pillar", "value_head": True, "parameters": core.count_params()}
        assert static_page._add_network("pillar", core, tmp_path, facts)["file"] == file


def test_a_site_with_pillar_alone_has_no_onnx_runtime(tmp_path, monkeypatch):
    monkeypatch.setattr(static_page, "runtime_archive", Mock(side_effect=AssertionError("nothing to fetch")))
    static_page.write_static_page([REFERENCE / "pillar"], tmp_path / "site")
    files = [path for path in (tmp_path / "site").rglob("*") if path.is_file()]
    assert not any("ort" in path.name or "onnx" in path.name for path in files)
    assert sum(path.stat().st_size for path in files) < 2_200_000


def test_a_game_is_played_and_reviewed_without_a_server(page):
    page.check("#more-players")
    page.select_option("#player-1", FIRST)
    page.evaluate("location.hash = ''")
    moves = pages.play_at_random(page, lambda number: pages.column(page, number).click(), seed=1)
    assert len(moves) >= 7
    assert re.match("You won|You lost|Draw", page.inner_text("#status"))
    page.select_option("#player-1", "person")
    page.evaluate("location.hash = '4455'")
    pages.wait_for_stones(page, 4)
    page.click("#analysis-go")
    page.wait_for_selector("#analysis-result:not([hidden])")
    note = page.inner_text("#analysis-note")
    assert note == f"Estimated by {FIRST} with a search of 400 simulations"
    grades = "[...document.querySelectorAll('#moves button')].map((chip) => chip.dataset.grade)"
    first, _, _, last = page.evaluate(grades)
    assert (first, last in ("mistake", "blunder")) == ("best move", True)
    page.click("#tab-play")


def test_nothing_is_asked_of_any_other_host_and_nobody_of_the_server(page, address, site):
    asked = set()
    page.on("request", lambda request: asked.add(request.url))
    pages.visit(page, f"{address}?again#44")
    assert all(url.startswith((address, "data:", "blob:")) for url in asked)
    assert not page.locator("#api-link").is_visible()
    assert "ONNX Runtime Web" in page.inner_text("#notices")
    assert "Apache License" in (site / "licences" / "distill.txt").read_text()
    assert "MIT License" in (site / "licences" / "onnxruntime-web.txt").read_text()
    assert (site / "licences" / "onnxruntime-web-notices.txt").stat().st_size > 10_000
    assert not [name for name in static_page.SERVER_ONLY if (site / name).exists()]
    assert not [*site.rglob("*.mjs")]  # Debian's nginx has no type for them, and browsers refuse a module without one


def test_an_older_page_is_replaced_or_stays_and_its_networks_are_named(tmp_path, monkeypatch):
    converted = conversion.Converted(difference=0.0)
    monkeypatch.setattr(conversion, "convert", lambda _name, _core, path: path.write_bytes(b"net") and converted)
    monkeypatch.setattr(static_page, "runtime_archive", lambda: None)
    out = tmp_path / "page"
    static_page.write_static_page([MODEL], out)
    (out / "CNAME").touch()
    worker = (out / "sw.js").read_text()
    static_page.write_static_page([MODEL], out)
    assert (out / "sw.js").read_text() == worker
    assert (out / "CNAME").exists(), "what somebody added to publish the page stays"
    facts = json.loads((out / "networks.json").read_text())
    assert facts["networks"][0]["commit"] == provenance.commit()
    assert facts["networks"][0]["network_sha256"] == file_hash(MODEL / "best.keras")
    assert f'<meta name="generator" content="distill {distill.__version__}">' in (out / "index.html").read_text()
    (tmp_path / "more" / MODEL.name).mkdir(parents=True)
    shutil.copy(MODEL / "best.keras", tmp_path / "more" / MODEL.name)
    with pytest.raises(UserError, match=f"is called {MODEL.name}, too"):
        static_page.write_static_page([MODEL, tmp_path / "more" / MODEL.name], out)
    monkeypatch.setattr(conversion, "convert", Mock(side_effect=UserError("no")))
    with pytest.raises(UserError, match="no"):
        static_page.write_static_page([MODEL], out)
    assert (out / "index.html").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["more", "page"]


def test_the_runtime_is_fetched_once_and_again_where_it_is_damaged_or_not_the_published_one(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(static_page, "INTEGRITY", static_page._integrity(b"published"))
    published, fetch = b"something else", Mock(side_effect=lambda *_, **__: io.BytesIO(published))
    monkeypatch.setattr("urllib.request.urlopen", fetch)
    with pytest.raises(UserError, match="SHA-512 differs"):
        static_page.runtime_archive()
    assert not list(tmp_path.iterdir())
    published = b"published"
    archive = static_page.runtime_archive()
    assert static_page.runtime_archive() == archive
    archive.write_bytes(b"damaged")
    assert static_page.runtime_archive().read_bytes() == b"published"
    assert fetch.call_count == 3

    archive.unlink()
    for error in (OSError("no route to host"), http.client.IncompleteRead(b"published")):
        fetch.side_effect = error
        with pytest.raises(UserError, match=rf"{re.escape(str(error))}.*put https://registry\.npmjs\.org/.*tgz into"):
            static_page.runtime_archive()
