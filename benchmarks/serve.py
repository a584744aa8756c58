"""Load test of `distill.serve`: latency of a move for 1 and for 50 simultaneous players, and memory over 10,000 moves.

    pip install -e ".[serve,dev]"
    python benchmarks/serve.py                        # a shipped network; --player NETWORK@puct:50 adds a search
    python benchmarks/serve.py --browser              # also `fetch`, in headless Chromium

Two servers run, each in its own process: one as users start it, which evaluates the network with ONNX Runtime, and one
that uses TensorFlow, as it does where ONNX Runtime is not installed. Rounds alternate between them, so other load on
the machine affects both; the ratio is the median over the rounds. `first` is the time from the start of the command to
its first reply, with the compiled search in the cache. The client sends requests as a browser does: over persistent
connections, one packet a request.

Each player requests its next move as soon as it has received the last one, at random positions of random games, so with
50 players 50 requests are waiting at any time. Memory is the resident set of the server with ONNX Runtime, read every
500 moves after the first 1,000, when libraries and caches have settled.
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
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from distill.game import rules

ROUNDS = 10

AS_USERS_DO = "import sys; from distill import serve; raise SystemExit(serve.main(sys.argv[1:]))"
WITHOUT_ONNX = "import sys; sys.modules['onnxruntime'] = None; "
KINDS = {"tensorflow": WITHOUT_ONNX + AS_USERS_DO, "onnx": AS_USERS_DO}
"""The program of each server, by runtime."""

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Times = dict[str, list[list[float]]]
"""Milliseconds, by runtime and round."""


def games(number: int) -> list[str]:
    """Move strings of random unfinished games."""
    dice = random.Random(0)
    found = []
    while len(found) < number:
        position, moves = rules.EMPTY, ""
        for _ in range(dice.randrange(36)):
            column = dice.choice(rules.legal_columns(position))
            position, moves = rules.next_position(position, column), f"{moves}{column + 1}"
            if rules.is_over(position):
                break
        if not rules.is_over(position):
            found.append(moves)
    return found


async def request_move(connection: Connection, player: str, moves: str) -> float:
    """Latency of one move in milliseconds, up to the end of the reply."""
    reader, writer = connection
    body = json.dumps({"player": player, "moves": moves}).encode()
    head = "POST /api/v1/analysis HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
    began = time.perf_counter()
    writer.write(f"{head}{len(body)}\r\n\r\n".encode() + body)
    reply = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = re.search(rb"content-length: (\d+)", reply)
    assert length is not None
    text = await reader.readexactly(int(length[1]))
    assert reply.startswith(b"http/1.1 200"), text
    return 1000 * (time.perf_counter() - began)


async def latencies(urls: Mapping[str, str], player: str, players: int, moves: int, rounds: int = ROUNDS) -> Times:
    """Latencies of `moves` requests to each server, alternately, with `players` requests waiting at any time."""
    times: Times = {kind: [] for kind in urls}
    for number in range(rounds):
        for kind in order(urls, number):
            times[kind].append(await one_round(urls[kind], player, players, moves // rounds))
    return times


async def one_round(url: str, player: str, players: int, moves: int) -> list[float]:
    """Latencies of `moves` requests to one server, over one new connection a player."""
    positions = iter(games(moves))
    times: list[float] = []

    async def one() -> None:
        connection = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
        for _ in range(3):  # not counted: on a new connection packets are acknowledged without delay
            await request_move(connection, player, "")
        for position in positions:
            times.append(await request_move(connection, player, position))
        connection[1].close()

    await asyncio.gather(*(one() for _ in range(players)))
    return times


def order(kinds: Mapping[str, Any], number: int) -> list[str]:
    """The order of the servers in a round; it is reversed from round to round."""
    return list(kinds) if number % 2 else list(reversed(kinds))


def resident(pid: int) -> float:
    """Resident memory of a process, in MB."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) / 1024


FETCH = """async ([player, games]) => {
  const times = [];
  for (const moves of games) {
    const began = performance.now();
    const headers = { "Content-Type": "application/json" };
    await (await fetch("api/v1/analysis", { method: "POST", headers, body: JSON.stringify({ player, moves }) })).json();
    times.push(performance.now() - began);
  }
  return times;
}"""


def in_chromium(urls: Mapping[str, str], player: str, number: int) -> Times:
    """Latencies in two pages of Chromium, from the call of `fetch` to the parsed reply."""
    from tests import pages

    def fetch(page: Any) -> list[float]:
        found: list[float] = page.evaluate(FETCH, [player, games(number // ROUNDS)])
        return found

    times: Times = {kind: [] for kind in urls}
    with pages.browser() as running, ExitStack() as stack:
        opened = {kind: stack.enter_context(pages.open_page(running, url)) for kind, url in urls.items()}
        for page in opened.values():
            fetch(page)
        for round_number in range(ROUNDS):
            for kind in order(urls, round_number):
                times[kind].append(fetch(opened[kind]))
    return times


def report(what: str, times: Times) -> dict[str, Any]:
    """Print a line of the table; returns its figures."""
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
    """A server in its own process: its address and process id."""
    command = [sys.executable, "-c", code, "--port", "0", "--models", models]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        yield next(found[1] for line in server.stderr if (found := re.search(r"play at (\S+)", line))), server.pid
    finally:
        server.terminate()
        server.wait()


def first_reply(code: str, models: str, player: str) -> float:
    """Milliseconds from the start of a server to its first reply."""
    began = time.perf_counter()
    with serving(code, models) as (url, _):
        asyncio.run(one_request(url, player))
        return 1000 * (time.perf_counter() - began)


async def one_request(url: str, player: str) -> None:
    """Request a move from the empty board, over a new connection."""
    connection = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
    await request_move(connection, player, "")
    connection[1].close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default="models")
    parser.add_argument(
        "--player", default="reference/pillar", help="player whose moves are requested; uct:1000 measures a search"
    )
    parser.add_argument(
        "--moves", type=int, default=10_000, help="moves of the memory test; each latency takes a tenth of them"
    )
    parser.add_argument("--browser", action="store_true")
    arguments = parser.parse_args()

    player = arguments.player
    figures: dict[str, Any] = {"player": player}
    print(f"{'ms':>20}{'TensorFlow':>18}{'ONNX Runtime':>18}")
    print(f"{'':>20}{'p50':>9}{'p99':>9}{'p50':>9}{'p99':>9}{'ratio':>8}")
    first_reply(KINDS["onnx"], arguments.models, player)  # fills the caches
    begun: Times = {kind: [] for kind in KINDS}
    for number in range(3):
        for kind in order(KINDS, number):
            begun[kind].append([first_reply(KINDS[kind], arguments.models, player)])
    figures["first"] = report("first", begun)
    with ExitStack() as stack:
        servers = {kind: stack.enter_context(serving(code, arguments.models)) for kind, code in KINDS.items()}
        urls = {kind: url for kind, (url, _) in servers.items()}
        asyncio.run(latencies(urls, player, 50, 500))  # not counted: loads the network and traces every batch size
        for players in (1, 50):
            name = f"{players} player{'s' if players > 1 else ''} at once"
            times = asyncio.run(latencies(urls, player, players, arguments.moves // 10))
            figures[f"{players}_players"] = report(name, times)
        if arguments.browser:
            figures["fetch"] = report("fetch in Chromium", in_chromium(urls, player, 100))
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
