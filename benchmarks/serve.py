"""`distill.serve` under load: from request to reply for 1 and for 50 players at once, and memory over 10,000 moves.

    pip install -e ".[serve,dev]"
    python benchmarks/serve.py                        # a shipped network; --player NETWORK@puct:50 adds a search
    python benchmarks/serve.py --browser              # also `fetch` and from click to stone in headless Chromium

Two servers run, each in a process of its own: one as users start it, which runs the network by ONNX Runtime, and one
that asks it by TensorFlow, as it does where ONNX Runtime is not installed. They are asked in turns, in rounds, so that
whatever else the machine does meets both; the ratio is the median over the rounds. `first` is the time from the start
of the command to its first answer, with the compiled search in the cache. The client is what a browser is to them:
connections that are kept, requests in one packet, and replies of two packets, which the system acknowledges when it
likes to.

Every player asks for a move as soon as its last one came, at random positions of random games, so 50 players are 50
requests waiting at all times. Memory is that of the server with ONNX Runtime: its resident set, read every 500 moves
after the first 1,000 (libraries and caches have settled by then).
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from distill.game import rules

ANIMATION = 350  # ms that the page waits before it shows a reply; part of what is measured from a click
ROUNDS = 10

AS_USERS_DO = "import sys; from distill import serve; raise SystemExit(serve.main(sys.argv[1:]))"
WITHOUT_ONNX = "from distill.networks import pretrained; pretrained.onnx_to_run = lambda path: None; "
KINDS = {"tensorflow": WITHOUT_ONNX + AS_USERS_DO, "onnx": AS_USERS_DO}
"""Python that serves, by what it shows."""

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Times = dict[str, list[list[float]]]
"""Milliseconds by kind of server and round."""


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


async def ask(connection: Connection, player: str, moves: str) -> float:
    """Milliseconds from a request for a move to the end of the reply."""
    reader, writer = connection
    body = json.dumps({"player": player, "moves": moves}).encode()
    head = "POST /api/v1/move HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
    began = time.perf_counter()
    writer.write(f"{head}{len(body)}\r\n\r\n".encode() + body)
    reply = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = re.search(rb"content-length: (\d+)", reply)
    assert length is not None
    text = await reader.readexactly(int(length[1]))
    assert reply.startswith(b"http/1.1 200"), text
    return 1000 * (time.perf_counter() - began)


async def play(urls: Mapping[str, str], player: str, players: int, moves: int, rounds: int = ROUNDS) -> Times:
    """Times of `moves` requests to each server, in turns, `players` of them waiting at any time."""
    times: Times = {kind: [] for kind in urls}
    for number in range(rounds):
        for kind in turn(urls, number):
            times[kind].append(await one_round(urls[kind], player, players, moves // rounds))
    return times


async def one_round(url: str, player: str, players: int, moves: int) -> list[float]:
    """Milliseconds of each of `moves` requests, over as many new connections as there are players."""
    positions = iter(games(moves))
    times: list[float] = []

    async def one() -> None:
        connection = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
        for _ in range(3):  # not counted: on a new connection the system acknowledges at once
            await ask(connection, player, "")
        for position in positions:
            times.append(await ask(connection, player, position))
        connection[1].close()

    await asyncio.gather(*(one() for _ in range(players)))
    return times


def turn(kinds: Mapping[str, Any], number: int) -> list[str]:
    """The order in which the servers are asked in a round: each is the first in every other one."""
    return list(kinds) if number % 2 else list(reversed(kinds))


def resident(pid: int) -> float:
    """MB of memory that a process holds."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) / 1024


FETCH = """async ([player, games]) => {
  const times = [];
  for (const moves of games) {
    const began = performance.now();
    const headers = { "Content-Type": "application/json" };
    await (await fetch("api/v1/move", { method: "POST", headers, body: JSON.stringify({ player, moves }) })).json();
    times.push(performance.now() - began);
  }
  return times;
}"""
CLICK = """(column) => new Promise((resolve) => {
  const before = location.hash.length, began = performance.now();
  const look = () => location.hash.length >= Math.max(before, 1) + 2 ?
    resolve(performance.now() - began) : requestAnimationFrame(look);
  document.querySelectorAll(".columns button")[column].click();
  look();
})"""


def in_chromium(urls: Mapping[str, str], player: str, number: int) -> dict[str, Times]:
    """By what is measured, the times in two pages of Chromium.

    `fetch`: from the call to the parsed reply. `click`: from a click to the reply's stone on the board, the page's own
    pause taken off.
    """
    from tests import pages

    def fetch(page: Any) -> list[float]:
        found: list[float] = page.evaluate(FETCH, [player, games(number // ROUNDS)])
        return found

    def click(page: Any) -> list[float]:
        found = []
        for _ in range(number // ROUNDS):
            page.keyboard.press("n")
            found.append(page.evaluate(CLICK, 3) - ANIMATION)
        return found

    measured: dict[str, Callable[[Any], list[float]]] = {"fetch": fetch, "click": click}
    with pages.browser() as running, ExitStack() as stack:
        opened = {kind: stack.enter_context(pages.open_page(running, url)) for kind, url in urls.items()}
        for page in opened.values():
            page.select_option("#player-1", player)
            fetch(page)
        times: dict[str, Times] = {what: {kind: [] for kind in urls} for what in measured}
        for what, measure in measured.items():
            for round_number in range(ROUNDS):
                for kind in turn(urls, round_number):
                    times[what][kind].append(measure(opened[kind]))
    return times


def report(what: str, times: Times) -> dict[str, Any]:
    """Print a line of the table; gives its figures."""
    figures: dict[str, Any] = {}
    for kind, rounds in times.items():
        p50, p99 = np.percentile(np.concatenate(rounds), [50, 99])
        figures[kind] = {"p50": round(float(p50), 1), "p99": round(float(p99), 1)}
    medians = [np.median(rounds, axis=1) for rounds in (times["tensorflow"], times["onnx"])]
    figures["ratio"] = round(float(np.median(medians[0] / medians[1])), 2)
    cells = "".join(f"{figures[kind][name]:>9.1f}" for kind in KINDS for name in ("p50", "p99"))
    print(f"{what:>20}{cells}{figures['ratio']:>8.2f}", flush=True)
    return figures


@contextmanager
def serving(code: str, models: str) -> Iterator[tuple[str, int]]:
    """A server in a process of its own: its address and process id."""
    command = [sys.executable, "-c", code, "--port", "0", "--models", models]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        yield next(found[1] for line in server.stderr if (found := re.search(r"play at (\S+)", line))), server.pid
    finally:
        server.terminate()
        server.wait()


def first_answer(code: str, models: str, player: str) -> float:
    """Milliseconds from the start of a server to its first move."""
    began = time.perf_counter()
    with serving(code, models) as (url, _):
        asyncio.run(one_question(url, player))
        return 1000 * (time.perf_counter() - began)


async def one_question(url: str, player: str) -> None:
    """A move from the empty board, over a connection of its own."""
    connection = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
    await ask(connection, player, "")
    connection[1].close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default="models")
    parser.add_argument("--player", default="reference/pillar", help="whom to ask; uct:1000 measures a search")
    parser.add_argument("--moves", type=int, default=10_000, help="for the memory; a tenth of it for each latency")
    parser.add_argument("--browser", action="store_true")
    arguments = parser.parse_args()

    player = arguments.player
    figures: dict[str, Any] = {"player": player}
    print(f"{'ms':>20}{'TensorFlow':>18}{'ONNX Runtime':>18}")
    print(f"{'':>20}{'p50':>9}{'p99':>9}{'p50':>9}{'p99':>9}{'ratio':>8}")
    first_answer(KINDS["onnx"], arguments.models, player)  # fills the caches
    begun: Times = {kind: [] for kind in KINDS}
    for number in range(3):
        for kind in turn(KINDS, number):
            begun[kind].append([first_answer(KINDS[kind], arguments.models, player)])
    figures["first"] = report("first", begun)
    with ExitStack() as stack:
        servers = {kind: stack.enter_context(serving(code, arguments.models)) for kind, code in KINDS.items()}
        urls = {kind: url for kind, (url, _) in servers.items()}
        asyncio.run(play(urls, player, 50, 500))  # loads the network, for every size of a batch
        for players in (1, 50):
            name = f"{players} player{'s' if players > 1 else ''} at once"
            times = asyncio.run(play(urls, player, players, arguments.moves // 10))
            figures[f"{players}_players"] = report(name, times)
        if arguments.browser:
            for what, times in in_chromium(urls, player, 100).items():
                figures[what] = report(f"{what} in Chromium", times)
        memory = []
        url, process = servers["onnx"]
        for _ in range(arguments.moves // 500):
            asyncio.run(one_round(url, player, 50, 500))
            memory.append(resident(process))
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
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
