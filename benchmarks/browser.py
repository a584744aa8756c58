"""The browser-only page in headless Chromium: a guided search, the first load, what is sent.

    pip install -e ".[onnx,dev]"
    python benchmarks/browser.py                      # those of docs/website.md; other models may be named

A page is written into a temporary folder and served by a plain file server on this machine. The first load is that of
a browser without any cache, until the first network has answered; what a real connection takes comes on top. Searches
are of positions of random games, one each, so that little is known from before; the first one of each number of
simulations is counted apart, since the browser compiles better code while it runs. Sent is what a host that compresses
sends: the site's files, each by gzip.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import http.server
import json
import os
import random
import sys
import tempfile
import threading
from pathlib import Path

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
LOADED = """async () => {
  const { predict } = await import("./network.js");
  await predict([new Int8Array(42)]);
  return performance.now();
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", default=["pillar", "cnn-strong", "transformer-strong"])
    parser.add_argument("--searches", type=int, default=20)
    parser.add_argument("--simulations", type=int, nargs="*", default=[50, 200, 800])
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        if export.main([*arguments.models, "--web", str(site)]):
            raise SystemExit(1)
        files = [path for path in site.rglob("*") if path.is_file()]
        sent = {path: len(gzip.compress(path.read_bytes())) for path in files}
        size = sum(path.stat().st_size for path in files)
        print(f"\nsent, gzipped: {sum(sent.values()) / 1e6:.2f} MB, of {size / 1e6:.2f} MB")
        for path in sorted(files, key=lambda path: -sent[path])[:5]:
            print(f"  {sent[path] / 1e6:5.2f} MB  {path.relative_to(site)}")

        handler = functools.partial(Quiet, directory=folder)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/site/"
        with pages.browser() as running:
            loads = []
            for _ in range(5):
                with pages.open_page(running, url) as page:
                    loads.append(page.evaluate(LOADED))
            print(f"first load: {np.median(loads):.0f} ms, the median of {len(loads)}")
            networks = json.loads((site / "networks.json").read_text())["networks"]
            for name in [each["name"] for each in networks if each["value"]]:
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
        server.shutdown()
        server.server_close()
    print(f"load of this machine meanwhile: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
