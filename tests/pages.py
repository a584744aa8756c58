"""A browser and a server for the tests of the page."""

import functools
import http.server
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers import REFERENCE

from distill import export
from distill.exporters import conversion, formats
from distill.game import rules
from distill.players import levels

FLAGS = (
    "--no-sandbox",  # tests run as root in containers
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


PATIENCE = 180
"""Longest wait in seconds: the first search waits for the compiler."""


def chromium() -> str:
    """The browser's path. Without one the test fails with one line."""
    for name in (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        if name and (path := shutil.which(name)):
            return path
    pytest.fail("the tests of the page need Chromium (Debian: apt-get install chromium; CHROMIUM names another place)")


@contextmanager
def browser() -> Iterator[Any]:
    """Headless Chromium, driven by Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        yield running
        running.close()


@contextmanager
def open_page(running: Any, url: str, ignore: tuple[str, ...] = (), more: bool = True, **options: Any) -> Iterator[Any]:
    """A fresh page, ready to play. Errors and warnings on the console fail the test, except lines with `ignore`.

    With `more` the page lists all players, not only the levels.
    """
    context = running.new_context(**{"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options})
    if more:
        context.add_init_script("localStorage.distill ??= '{\"more\": true}'")
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    problems: list[str] = []
    page.on("console", lambda line: problems.append(line.text) if line.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(url)
    page.wait_for_selector("html[data-ready]")
    yield page
    context.close()
    assert [line for line in problems if not any(word in line for word in ignore)] == []


def wait_for(page: Any, script: str, arg: Any = None) -> None:
    """Wait until a script's value is true. (Playwright's own function needs eval, which the page's CSP forbids.)"""
    deadline = time.monotonic() + PATIENCE
    while not page.evaluate(script, arg):
        assert time.monotonic() < deadline, f"timeout: {script} with {arg!r}"
        page.wait_for_timeout(30)


def phone(width: int, height: int) -> dict[str, Any]:
    """The options of a phone's browser."""
    return {"viewport": {"width": width, "height": height}, "has_touch": True, "is_mobile": True}


def check_in_window(page: Any, *selectors: str) -> list[dict[str, float]]:
    """Elements are on the screen from top to bottom; returns their boxes."""
    boxes = [page.locator(selector).bounding_box() for selector in selectors]
    height = page.viewport_size["height"]
    for selector, box in zip(selectors, boxes, strict=True):
        assert 0 <= box["y"] < box["y"] + box["height"] <= height, selector
    return boxes


def moves_of(page: Any) -> str:
    """The moves of the game, from the page's address."""
    return str(page.evaluate("location.hash.slice(1)"))


def start(page: Any, moves: str, first: str = "person", second: str = "person") -> None:
    """Choose two players and enter a position."""
    page.select_option("#player-0", first)
    page.select_option("#player-1", second)
    page.fill("#game-text", moves)
    page.press("#game-text", "Enter")
    page.evaluate("document.activeElement.blur()")


def column(page: Any, number: int) -> Any:
    """The button of a column, 1 to 7."""
    return page.get_by_role("button", name=re.compile(f"^Column {number},"))


def status_says(page: Any, *texts: str) -> None:
    """Wait until the line above the board contains these texts."""
    for text in texts:
        wait_for(page, "text => document.getElementById('status').textContent.includes(text)", text)


def stones(page: Any) -> int:
    """Number of stones on the board."""
    return int(page.locator("#stones use").count())


def wait_for_stones(page: Any, number: int) -> None:
    """Wait until so many stones are on the board."""
    wait_for(page, "number => document.querySelectorAll('#stones use').length === number", number)


def visit(page: Any, address: str = "") -> None:
    """Load an address, or the same again, and wait until the page is ready."""
    page.goto(address) if address else page.reload()
    page.wait_for_selector("html[data-ready]")


def play_at_random(page: Any, press: Callable[[int], None], seed: int) -> str:
    """A person's game at random to its end; `press` plays in a column from 1 to 7. Returns the moves."""
    dice = random.Random(seed)
    while True:
        wait_for_turn(page)
        moves = moves_of(page)
        if rules.is_over(position := rules.from_moves(moves)):
            return moves
        press(dice.choice(rules.legal_columns(position)) + 1)
        wait_for(page, "before => location.hash.slice(1) !== before", moves)


def complaints(page: Any) -> list[str]:
    """The violations that axe finds, by rule and place."""
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page).response["violations"]
    return [f"{rule['id']}: {node['target']} {node['failureSummary']}" for rule in violations for node in rule["nodes"]]


def wait_for_turn(page: Any) -> None:
    """Wait until a person is to move or the game is over."""
    wait_for(page, "['open', 'over'].includes(document.getElementById('board').dataset.state)")


def reply_with(page: Any, *columns: int) -> None:
    """Let the levels reply with these columns, 1 to 7, one after another; what networks see is asked of the server."""
    replies = iter(columns)

    def answer(route: Any) -> None:
        if route.request.post_data_json["player"] in levels.LEVELS:
            route.fulfill(json={"move": next(replies) - 1})
        else:
            route.fallback()

    page.route("**/api/v1/analysis", answer)


def cells_of(page: Any, kind: str) -> list[str]:
    """The numbers in a row below the board, column by column."""
    page.wait_for_selector(f"#{kind}-strip[data-state=shown]")
    return page.locator(f"#{kind}-strip .number").all_inner_texts()


def asked(page: Any, server: str, player: str, moves: str) -> dict[str, Any]:
    """What the API answers."""
    return page.request.post(f"{server}api/v1/analysis", data={"player": player, "moves": moves, "seed": 1}).json()


def fetched(url: str, **body: Any) -> bytes:
    """What a server answers to a GET request, or with a body to a POST request."""
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None)
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
        return reply.read()


def site_networks() -> list[str]:
    """The networks in the command of `docs/website.md` that writes the page without a server."""
    page = (REFERENCE.parents[1] / "docs" / "website.md").read_text(encoding="utf-8")
    return re.search(r"distill\.export (.+) --web site\n", page)[1].split()


def write_site(folder: Path) -> None:
    """What that command writes, with the files that ship in place of converted ones."""

    def copy(name: str, _core: Any, path: Path) -> conversion.Converted:
        shutil.copy(REFERENCE / path.stem / "saved_model" / formats.FORMATS[name].file, path)
        return conversion.Converted(difference=0.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conversion, "convert", copy)
        assert export.main([*site_networks(), "--web", str(folder)]) == 0


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def hosted(folder: Path) -> Iterator[str]:
    """The address of a plain file server."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def serving(*flags: str | Path) -> Iterator[str]:
    """The address of `python -m distill.serve` in a process of its own."""
    command = [sys.executable, "-m", "distill.serve", "--port", "0", *map(str, flags)]
    with listening(subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)) as address:
        yield address


@contextmanager
def listening(server: subprocess.Popen[str]) -> Iterator[str]:
    """The address that a process of `serve` prints. Afterwards it is stopped by Ctrl-C."""
    assert server.stderr is not None
    try:
        said = []
        for line in server.stderr:
            said.append(line)
            if address := re.search(r"play at (\S+)", line):
                yield address[1]
                break
        else:
            raise AssertionError("".join(said))
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE) == 130
        assert "Traceback" not in server.stderr.read()
    finally:
        server.kill()
        server.communicate()
