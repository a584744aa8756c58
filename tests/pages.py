"""A browser, a server and small models for the tests of the page."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
import pytest
from network_helpers import with_random_weights

from distill import nets

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
"""Seconds that a page is given for anything at all: the first search waits for the compiler."""


def small_network() -> keras.Model:
    """An untrained CNN with value head; its moves are as good as random and always the same."""
    keras.utils.set_random_seed(7)
    return with_random_weights(nets.build("cnn", value_head=True))


def chromium() -> str:
    """The browser's path; the test fails with one line where there is none."""
    for name in (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        if name and (found := shutil.which(name)):
            return found
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
    """A fresh page on an address, ready to play; fails at the end if the console told of any problem.

    `ignore` names what a test provokes itself, by words of the console's line. With `more` it is as somebody finds it
    who asked for more players than the levels before.
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
    """Until a script's value is true. (Playwright's own way needs eval, which the page's security policy forbids.)"""
    deadline = time.monotonic() + PATIENCE
    while not page.evaluate(script, arg):
        assert time.monotonic() < deadline, f"in vain: {script} with {arg!r}"
        page.wait_for_timeout(30)


@contextmanager
def serving(*flags: str | Path) -> Iterator[str]:
    """`python -m distill.serve` in a process of its own; gives the address."""
    command = [sys.executable, "-m", "distill.serve", "--port", "0", *map(str, flags)]
    with listening(subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)) as address:
        yield address


@contextmanager
def listening(server: subprocess.Popen[str]) -> Iterator[str]:
    """The address that a process of `serve` says it listens at; it is ended with Ctrl-C, as a user does."""
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
