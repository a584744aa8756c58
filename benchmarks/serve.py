"""`distill.serve` under load: from request to reply for 1 and for 50 players at once, and memory over 10,000 moves.

    pip install -e ".[serve,dev]"
    python benchmarks/serve.py                        # a network in models/, chosen by --player
    python benchmarks/serve.py --browser              # also from a click to the stone, in headless Chromium

The server runs in a process of its own, as users start it. Every player asks for a move as soon as its last one came,
at random positions of random games, so 50 players are 50 requests waiting at all times. Memory is the server's
resident set, read every 500 moves after the first 1,000 (libraries and caches have settled by then).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from distill.game import rules

ANIMATION = 350  # ms that the page waits before it shows a reply; part of what is measured from a click


def games(number: int) -> list[str]:
    """Move strings of random unfinished games."""
    dice = random.Random(0)
    found = []
    while len(found) < number:
        position, moves = rules.EMPTY, ""
        for _ in range(dice.randrange(36)):
            column = dice.choice(rules.legal_columns(position))
            position, moves = rules.play(position, column), f"{moves}{column + 1}"
            if rules.is_over(position):
                break
        if not rules.is_over(position):
            found.append(moves)
    return found


async def play(url: str, player: str, players: int, moves: int) -> list[float]:
    """Milliseconds of each of `moves` requests, `players` of them waiting at any time."""
    positions = iter(games(moves))
    times: list[float] = []

    async def one(client: httpx2.AsyncClient) -> None:
        await client.post("/api/move", json={"player": player, "moves": ""})  # connects; not counted
        for position in positions:
            began = time.perf_counter()
            reply = await client.post("/api/move", json={"player": player, "moves": position})
            reply.raise_for_status()
            times.append(1000 * (time.perf_counter() - began))

    limits = httpx2.Limits(max_connections=players, max_keepalive_connections=players)
    async with httpx2.AsyncClient(base_url=url, timeout=300, limits=limits) as client:
        await asyncio.gather(*(one(client) for _ in range(players)))
    return times


def resident(pid: int) -> float:
    """MB of memory that a process holds."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) / 1024


def clicks(url: str, player: str, number: int) -> list[float]:
    """Milliseconds from a click in Chromium to the reply's stone on the board, the page's own pause taken off."""
    from tests import pages

    times: list[float] = []
    with pages.browser() as running, pages.open_page(running, url) as page:
        page.select_option("#player-1", player)
        script = """(column) => new Promise((resolve) => {
          const before = location.hash.length, began = performance.now();
          const look = () => location.hash.length >= Math.max(before, 1) + 2 ?
            resolve(performance.now() - began) : requestAnimationFrame(look);
          document.querySelectorAll(".columns button")[column].click();
          look();
        })"""
        for _ in range(number):
            page.keyboard.press("n")
            times.append(page.evaluate(script, 3) - ANIMATION)
    return times


def percentiles(times: list[float]) -> dict[str, float]:
    p50, p99 = np.percentile(times, [50, 99])
    return {"p50": round(float(p50), 1), "p99": round(float(p99), 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default="models")
    parser.add_argument("--player", default="cnn", help="whom to ask; uct:1000 measures a search")
    parser.add_argument("--moves", type=int, default=10_000, help="for the memory; a tenth of it for each latency")
    parser.add_argument("--browser", action="store_true")
    arguments = parser.parse_args()

    command = [sys.executable, "-m", "distill.serve", "--port", "0", "--models", arguments.models]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    figures: dict[str, Any] = {"player": arguments.player}
    try:
        address = next(found for line in server.stderr if (found := re.search(r"play at (\S+)", line)))
        url = address[1]
        asyncio.run(play(url, arguments.player, 1, 20))  # loads the network
        print(f"{'players at once':>16}{'p50 ms':>10}{'p99 ms':>10}{'moves/s':>10}")
        for players in (1, 50):
            began = time.perf_counter()
            times = asyncio.run(play(url, arguments.player, players, arguments.moves // 10))
            figures[f"{players}_players"] = {**percentiles(times), "per_s": len(times) / (time.perf_counter() - began)}
            print(f"{players:16}{{p50:10.1f}}{{p99:10.1f}}{{per_s:10.0f}}".format(**figures[f"{players}_players"]))
        if arguments.browser:
            figures["click"] = percentiles(clicks(url, arguments.player, 100))
            print(f"{'from a click':>16}{{p50:10.1f}}{{p99:10.1f}}".format(**figures["click"]))
        memory = []
        for _ in range(arguments.moves // 500):
            asyncio.run(play(url, arguments.player, 50, 500))
            memory.append(resident(server.pid))
        settled = memory[min(2, len(memory) - 1) :]
        figures["memory_mb"] = {
            "first": round(settled[0], 1),
            "last": round(settled[-1], 1),
            "highest": round(max(settled), 1),
        }
        print(
            "memory over {} moves: {first:.0f} MB, at the end {last:.0f}, at most {highest:.0f}".format(
                arguments.moves, **figures["memory_mb"]
            )
        )
    finally:
        server.terminate()
        server.wait()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
