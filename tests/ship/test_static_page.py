"""The page without a server. Properties, in headless Chromium against a plain file server:

- of every network that ships, the browser's outputs are Python's on 64 boards, full columns among them;
- a game is played by clicks against the network, and the search in the browser takes a win and blocks one;
- nothing is asked of any other host, the console stays silent, and it works from a folder below the host's root;
- the folder holds the licences of what it bundles; what only the server needs is not in it;
- an older page is replaced as a whole; a folder that holds anything else is refused and stays;
- ONNX Runtime Web is fetched once, and refused where its hash is not the published one; without the ONNX packages, or
  without any way to fetch it, one line says what to do.
"""

from __future__ import annotations

import functools
import http.server
import random
import re
import shutil
import threading

import numpy as np
import pytest
from helpers import REFERENCE, SHIPPED

from distill import export
from distill.base import UserError, provenance
from distill.game import rules
from distill.nets import saved
from distill.ship import comparison, formats, static_page
from tests import pages

MODEL = REFERENCE / SHIPPED[0]
"""For what does not depend on the network."""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def host(tmp_path_factory, exports):
    """A plain file server's folder and address, with a page for each shipped network in a folder of it.

    One network is converted for its page; the others' pages take the file that the export wrote by the same function.
    """
    root = tmp_path_factory.mktemp("host")
    assert export.main([str(MODEL), "--web", str(root / MODEL.name)]) == 0
    for name in SHIPPED[1:]:
        with pytest.MonkeyPatch.context() as patch:
            written = exports(name) / "saved_model" / "model.onnx"
            patch.setattr(
                formats, "write", lambda _name, _core, file, written=written: shutil.copy(written, file) and 0.0
            )
            assert export.main([str(REFERENCE / name), "--web", str(root / name)]) == 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=root))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield root, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def running():
    with pages.browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def page(running, host):
    with pages.open_page(running, f"{host[1]}{MODEL.name}/") as opened:
        yield opened


@pytest.mark.parametrize("name", SHIPPED)
def test_the_browsers_answers_are_pythons(running, host, name):
    boards = comparison.check_boards(64)
    script = """async (boards) => {
      const { predict } = await import("./network.js");
      return predict(boards.map((board) => Int8Array.from(board)));
    }"""
    with pages.open_page(running, f"{host[1]}{name}/") as page:
        answers = page.evaluate(script, boards.reshape(len(boards), -1).tolist())
    expected = saved.predict_with(saved.load_core(REFERENCE / name / "best.keras"))(boards)
    found = {output: np.array([answer[output] for answer in answers]) for output in expected}
    assert comparison.largest_difference(expected, found) <= comparison.TOLERANCE


def test_a_game_is_played_without_a_server(page):
    page.select_option("#player-1", MODEL.name)
    page.evaluate("location.hash = ''")
    dice = random.Random(1)
    while True:
        pages.wait_for(page, "['open', 'over'].includes(document.getElementById('board').dataset.state)")
        moves = page.evaluate("location.hash.slice(1)")
        if rules.is_over(position := rules.from_moves(moves)):
            break
        page.locator(".columns button").nth(dice.choice(rules.legal_columns(position))).click()
        pages.wait_for(page, "before => location.hash.slice(1) !== before", moves)
    assert len(moves) >= 7
    assert "wins" in page.inner_text("#status") or "draw" in page.inner_text("#status")


@pytest.mark.parametrize(("moves", "best"), [("414243", 3), ("1414142", 3), ("7172736", 3)])
def test_the_search_in_the_browser_wins_and_blocks(page, moves, best):
    script = "async (moves) => (await import('./network.js')).opinion('uct:1000', moves)"
    opinion = page.evaluate(script, moves)
    assert opinion["column"] == best
    assert sum(opinion["policy"]) == pytest.approx(1)
    assert -1 <= opinion["value"] <= 1


def test_nothing_is_asked_of_any_other_host_and_nobody_of_the_server(page, host):
    asked = set()
    page.on("request", lambda request: asked.add(request.url))
    page.goto(f"{host[1]}{MODEL.name}/?again#44")
    page.wait_for_selector("html[data-ready]")
    assert all(url.startswith((f"{host[1]}{MODEL.name}/", "data:", "blob:")) for url in asked)
    assert not page.locator("#api-link").is_visible()
    assert "ONNX Runtime Web" in page.inner_text("#notices")


def test_the_folder_holds_licences_and_nothing_of_the_server(host):
    folder = host[0] / MODEL.name
    assert "Apache License" in (folder / "licences" / "distill.txt").read_text()
    assert "MIT License" in (folder / "licences" / "onnxruntime-web.txt").read_text()
    assert (folder / "licences" / "onnxruntime-web-notices.txt").stat().st_size > 10_000
    assert not [name for name in static_page.SERVER_ONLY if (folder / name).exists()]
    assert sorted(path.name for path in host[0].iterdir()) == SHIPPED


def write_quickly(monkeypatch) -> None:
    """Leave out what takes seconds, for tests of the folder."""
    monkeypatch.setattr(static_page.formats, "write", lambda name, core, file: file.write_bytes(b"net") and 0.0)
    monkeypatch.setattr(static_page, "_add_runtime", lambda folder: folder.mkdir())


def test_an_older_page_is_replaced_or_stays_and_so_does_anything_else(tmp_path, monkeypatch):
    write_quickly(monkeypatch)
    out, other = tmp_path / "page", tmp_path / "other"
    static_page.write_static_page(MODEL, out)
    (out / "stale").touch()
    static_page.write_static_page(MODEL, out)
    assert not (out / "stale").exists()
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="something else here"):
        static_page.write_static_page(MODEL, other)
    assert (other / "mine.txt").read_text() == "mine"

    def fails(name, core, file):
        raise UserError("no")

    monkeypatch.setattr(static_page.formats, "write", fails)
    with pytest.raises(UserError, match="no"):
        static_page.write_static_page(MODEL, out)
    assert (out / "index.html").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "page"]


def test_a_runtime_that_is_not_the_published_one_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(static_page, "_fetch", lambda file: file.write_bytes(b"something else"))
    with pytest.raises(UserError, match="SHA-512 differs"):
        static_page.runtime_archive()
    assert not list((tmp_path / "distill").iterdir())


def test_a_runtime_is_fetched_once_and_a_damaged_one_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(static_page, "INTEGRITY", _sha512(b"published"))
    fetched = []
    monkeypatch.setattr(static_page, "_fetch", lambda file: fetched.append(file.write_bytes(b"published")))
    archive = static_page.runtime_archive()
    assert static_page.runtime_archive() == archive
    assert len(fetched) == 1
    archive.write_bytes(b"damaged")
    assert static_page.runtime_archive().read_bytes() == b"published"
    assert len(fetched) == 2


def _sha512(content: bytes) -> str:
    import base64
    import hashlib

    return base64.b64encode(hashlib.sha512(content).digest()).decode()


def test_without_a_network_one_line_says_where_to_put_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def unreachable(file):
        raise OSError("no route to host")

    monkeypatch.setattr(static_page, "_fetch", unreachable)
    with pytest.raises(UserError, match=r"no route to host.*put https://registry\.npmjs\.org/.*tgz into"):
        static_page.runtime_archive()


def test_without_the_onnx_packages_one_line_says_how_to_install_them(tmp_path, monkeypatch):
    monkeypatch.setattr(static_page.formats.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=re.escape(provenance.install_line("onnx"))):
        static_page.write_static_page(MODEL, tmp_path / "page")
    assert not list(tmp_path.iterdir())
