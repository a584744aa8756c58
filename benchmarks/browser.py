"""The static page in headless Chromium: time of the first load, first reply, analysis and searches, and download size.

    pip install -e ".[onnx,dev]"
    python benchmarks/browser.py                      # the networks of docs/website.md; other models may be named
    python benchmarks/browser.py --site before --site after         # compare two folders of `export --web`

A page is written into a temporary folder and served by a plain file server on this machine. The first load is that of
a browser with an empty cache, until the first network has been evaluated; the time of a real connection is not
included. The first reply is that of `perfect` on the same new page, and the analysis that of a game of 38 moves by a
search of 400 simulations; both are medians of --rounds, from the opening of the page. Each search is of a position of
another random game, so few of its evaluations are cached. The first search of each number of simulations is reported
separately, because the browser optimizes code while it runs. The download size is that of the site's files, each
compressed with gzip, as a host would send them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from distill import export
from distill.game import rules
from tests import pages

SEARCH = """async ([player, moves]) => {
  const { opinion } = await import("./network.js");
  const began = performance.now();
  await opinion(player, moves);
  return performance.now() - began;
}"""
ANSWERED = """async () => {
  const { opinion } = await import("./network.js");
  await opinion("perfect", "4");
  return performance.now();
}"""
ANALYSED = """async ([player, moves]) => {
  const { opinion, opinions } = await import("./network.js");
  if (opinions) await opinions(player, moves);
  else for (let ply = 0; ply < moves.length; ply += 1) await opinion(player, moves.slice(0, ply)); // an older page
  return performance.now();
}"""
GAME = "43357244545376421543275671312672712536"
"""A game of two random players with 38 moves."""
LOADED = """async () => {
  const { predict } = await import("./network.js");
  await predict([new Int8Array(42)]);
  return performance.now();
}"""


def open_games(number: int) -> list[str]:
    """Move strings of random games, 4 to 16 moves long and not over."""
    dice, found = random.Random(0), list[str]()
    while len(found) < number:
        moves = ""
        for _ in range(dice.randint(4, 16)):
            position = rules.from_moves(moves)
            if not rules.is_over(position):
                moves += str(1 + dice.choice(rules.legal_columns(position)))
        if not rules.is_over(rules.from_moves(moves)):
            found.append(moves)
    return found


def measure_sites(running: Any, sites: dict[str, str], rounds: int) -> None:
    """Print the seconds of a first load, a first reply and a game's analysis, alternating between the pages."""
    for script, argument, what in (
        (LOADED, None, "first load"),
        (ANSWERED, None, "first reply of perfect"),
        (ANALYSED, ["pillar@puct:400", GAME], "analysis of 38 moves"),
    ):
        times: dict[str, list[float]] = {name: [] for name in sites}
        for _ in range(rounds):
            for name, url in sites.items():
                with pages.open_page(running, url) as page:
                    times[name].append(page.evaluate(script, argument) / 1000)
        for name, seconds in times.items():
            print(f"{what}: {np.median(seconds):.2f} s, {min(seconds):.2f} to {max(seconds):.2f}  {name}", flush=True)
        first, *others = (np.array(seconds) for seconds in times.values())
        for other in others:
            print(f"  ratio {np.median(first / other):.2f}, the median of pairs", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", default=["pillar", "cnn-strong", "transformer-strong"])
    parser.add_argument("--searches", type=int, default=20)
    parser.add_argument("--simulations", type=int, nargs="*", default=[50, 200, 800])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--site", type=Path, action="append", default=[], help="measure this folder; for two, a ratio")
    arguments = parser.parse_args()
    if arguments.site:
        with ExitStack() as stack:
            sites = {str(site): stack.enter_context(pages.hosted(site)) for site in arguments.site}
            measure_sites(stack.enter_context(pages.browser()), sites, arguments.rounds)
        print(f"load average of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        return

    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        if export.main([*arguments.models, "--web", str(site)]):
            raise SystemExit(1)
        files = [path for path in site.rglob("*") if path.is_file()]
        compressed = {path: len(gzip.compress(path.read_bytes())) for path in files}
        size = sum(path.stat().st_size for path in files)
        print(f"\ndownload, gzipped: {sum(compressed.values()) / 1e6:.2f} MB, of {size / 1e6:.2f} MB")
        for path in sorted(files, key=lambda path: -compressed[path])[:5]:
            print(f"  {compressed[path] / 1e6:5.2f} MB  {path.relative_to(site)}")

        with pages.hosted(Path(folder)) as address, pages.browser() as running:
            url = f"{address}site/"
            measure_sites(running, {"": url}, arguments.rounds)
            networks = json.loads((site / "networks.json").read_text())["networks"]
            for name in [each["name"] for each in networks if each["value_head"]]:
                with pages.open_page(running, url) as page:
                    page.evaluate(LOADED)
                    for simulations in arguments.simulations:
                        games = open_games(arguments.searches + 1)
                        times = [page.evaluate(SEARCH, [f"{name}@puct:{simulations}", moves]) for moves in games]
                        first, *others = times
                        print(
                            f"{name}@puct:{simulations}: {np.median(others):.0f} ms median, {min(others):.0f} to "
                            f"{max(others):.0f}; the first {first:.0f}",
                            flush=True,
                        )
    print(f"load average of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
