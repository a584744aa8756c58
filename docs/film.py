"""Films what the network sees on the page, for README and docs/website.md: `python docs/film.py`.

    docs/sight.gif    two positions of the page's tour, each checked by a search
    docs/sight.png    the six steps of the second one

Needs Chromium, and the extra `solver` for the exact answer.
The page's timers stand still and its transitions are set to points in time, so that the frames do not depend on the
machine's speed.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image
from playwright.sync_api import sync_playwright

FILM = Path(__file__).with_name("sight.gif")
STILLS = FILM.with_suffix(".png")
TOUR = Path(__file__).parents[1] / "distill/web/page/tour.json"
SHOWN = ("surprising", "wrong")
"""The kinds of the tour's positions that are filmed."""
STEPS = ("glance", "1", "50", "200", "800", "exact")
WINDOW = {"width": 430, "height": 900}
"""In CSS pixels: a narrow page, with the panel below the board."""
ZOOM = 1.25
"""Pixels of the film per CSS pixel."""
HIDDEN = ".tabs, #panel-idea, #sight .buttons"
"""Parts of the page that are left out."""
MOMENTS = (0, 50, 100, 150, 200, 260, 340)
"""Times of a transition, in ms, between which frames are taken."""
GLANCE, STEP, EXACT = 1500, 550, 2500
"""How long the network's answer, those of the search and the exact one stay, in ms."""
COLOURS = 160


class Frame(NamedTuple):
    """A picture of the page, and how long it is shown, in ms."""

    picture: Image.Image
    duration: int


def main() -> None:
    kinds = [position["kind"] for position in json.loads(TOUR.read_text(encoding="utf-8"))["positions"]]
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    frames = list[Frame]()
    with serving() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for kind in SHOWN:
            page = browser.new_page(viewport=WINDOW, device_scale_factor=ZOOM)
            page.goto(f"{address}#idea")
            frames += (latest := list(film(page, kinds.index(kind))))
            page.close()
        browser.close()
    save(frames)
    stills = sheet([frame.picture for frame in latest if frame.duration >= STEP], 3)
    stills.quantize(COLOURS, dither=Image.Dither.NONE).save(STILLS, optimize=True)


@contextmanager
def serving() -> Iterator[str]:
    """The address of a server of the networks that ship."""
    command = [sys.executable, "-m", "distill.serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        try:
            yield next(address[1] for line in server.stderr if (address := re.search(r"play at (\S+)", line)))
        finally:
            server.terminate()


def film(page: Any, place: int) -> Iterator[Frame]:
    """The frames of a position of the tour, counted from 0."""
    page.wait_for_selector("#tour-title:not(:empty)")
    for _ in range(place):
        page.click("#tour-next")
    wait_for(page, "document.getElementById('sight-line').textContent.startsWith('At a glance')")
    page.clock.install()
    page.clock.pause_at("2100-01-01")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Animation.enable")
    devtools.send("Animation.setPlaybackRate", {"playbackRate": 0})
    page.evaluate("names => document.querySelectorAll(names).forEach((part) => (part.style.display = 'none'))", HIDDEN)
    page.evaluate("Object.assign(document.getElementById('sight').style, {minHeight: '165px', alignContent: 'start'})")
    for step in STEPS:
        if step == "1":
            page.evaluate("document.getElementById('sight-check').click()")
        wait_for(page, f"document.getElementById('board').dataset.sight === '{step}'")
        for before, moment in pairwise(MOMENTS):
            page.evaluate("moment => document.getAnimations().forEach((one) => (one.currentTime = moment))", moment)
            if step != "glance":
                yield Frame(picture(page), moment - before)
        page.evaluate("document.getAnimations().forEach((one) => one.finish())")
        yield Frame(picture(page), {"glance": GLANCE, "exact": EXACT}.get(step, STEP))
        page.clock.run_for(1000)  # on to the next step


def wait_for(page: Any, script: str) -> None:
    for _ in range(3000):
        if page.evaluate(script):
            return
        page.wait_for_timeout(20)
    raise TimeoutError(script)


def picture(page: Any) -> Image.Image:
    """The line above the board, the board and the panel."""
    top = page.locator("#status").bounding_box()["y"] - 8
    panel = page.locator("#sight").bounding_box()
    clip = {"x": 0, "y": top, "width": WINDOW["width"], "height": panel["y"] + panel["height"] + 10 - top}
    return Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")


def save(frames: list[Frame]) -> None:
    """Write the film. All frames have the palette of some of them, so that only what moves is stored."""
    palette = sheet([frame.picture for frame in frames[:: len(frames) // 4]], 5).quantize(COLOURS)
    pictures = [frame.picture.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    durations = [frame.duration for frame in frames]
    pictures[0].save(FILM, save_all=True, append_images=pictures[1:], duration=durations, loop=0)


def sheet(pictures: list[Image.Image], columns: int) -> Image.Image:
    """Pictures of one size side by side, row by row."""
    width, height = pictures[0].size
    joined = Image.new("RGB", (width * columns, height * -(-len(pictures) // columns)))
    for number, part in enumerate(pictures):
        joined.paste(part, (width * (number % columns), height * (number // columns)))
    return joined


if __name__ == "__main__":
    main()
