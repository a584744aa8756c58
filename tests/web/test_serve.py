"""The command `serve`, with a real server. Properties:

- a connection is served with TCP_NODELAY, or every reply on a kept one would wait for the client's acknowledgement;
- SIGTERM and Ctrl-C stop it after the running searches, whatever is open: half-sent requests, queued searches;
- several people review at once, and none of them is refused;
- what a client that has gone was waiting for is not computed, by searches or by networks;
- a stop leaves no semaphores of the solver's process;
- a request without a host is answered, and a file name with a null byte is not found;
- a taken port, a folder without networks and missing packages are told in one line;
- the examples of docs/website.md work, and a page of another host may use the API where that was said;
- it prints where it listens, over IPv4 and IPv6, and answers under other names only where that was said.
"""

import http.client
import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvicorn
from starlette.testclient import TestClient

from distill import serve
from distill.common import provenance
from distill.players import solver
from distill.web import api, opponents
from distill.web.opponents import Opponents
from tests import pages
from tests.api_helpers import URL
from tests.pages import PATIENCE

STOPS_WITHIN = 60
"""Seconds, for a machine with much else to do: the running search of a million simulations is finished first."""
GAME = "54712566226127126621574377157631535333"


class Started:
    """A server in a thread of this process."""

    def __init__(self, opponents: Opponents) -> None:
        self.opponents = opponents
        self.server = serve._server(api.application(opponents))
        self.listener = serve._listen("127.0.0.1", 0)
        self.address = self.listener.getsockname()
        self._thread = threading.Thread(target=self.server.run, args=[[self.listener]])
        self._thread.start()

    def stop(self) -> None:
        self.server.should_exit = True
        self._thread.join()


@pytest.fixture
def started(models, monkeypatch) -> Iterator[Started]:
    async def nothing(_):
        pass

    monkeypatch.setattr(Opponents, "warm_up", nothing)  # seconds of work for nobody
    found = Started(Opponents([models], 1000, workers=1))
    yield found
    found.stop()


def request(player: str, moves: str = "4", path: str = "move", length: int | None = None) -> bytes:
    """A request's bytes; `length` is the Content-Length that it claims."""
    body = json.dumps({"player": player, "moves": moves}).encode()
    head = f"POST /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {length or len(body)}\r\n\r\n".encode() + body


def status(address: tuple[str, int], *question: str) -> int:
    """The status of the reply to a request over a connection of its own."""
    with socket.create_connection(address, timeout=PATIENCE) as client:
        client.sendall(request(*question))
        return int(client.makefile("rb").readline().split()[1])


def eventually(condition) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def process(*flags) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    """A server in a process of its own, and its address."""
    command = [sys.executable, "-m", "distill.serve", "--port", "0", *map(str, flags)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            line = next(line for line in server.stderr if "play at" in line)
            url = urlsplit(line.split()[2])
            yield server, (url.hostname, url.port)
        finally:
            server.kill()


def test_a_connection_is_served_without_waiting_for_acknowledgements(started):
    with closing(http.client.HTTPConnection(*started.address, timeout=PATIENCE)) as client:
        client.request("GET", "/api/v1/players")
        assert client.getresponse().read().startswith(b'{"players"')
        (connection,) = started.server.server_state.connections
        accepted = connection.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_within_seconds_whatever_is_open(number):
    with process("--workers", 1, "--max-simulations", 1_000_000) as (server, address):
        with ExitStack() as stack:
            clients = [stack.enter_context(socket.create_connection(address)) for _ in range(36)]
            clients[0].sendall(b"POST /api/v1/move HTTP/1.1\r\nHost:")
            clients[1].sendall(request("random", length=1000))
            clients[2].sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")  # then kept open
            for client in clients[4:]:
                client.sendall(request("uct:1000000"))
            assert status(address, "random") == 200
            began = time.monotonic()
            server.send_signal(number)
            assert server.wait(PATIENCE) == 128 + number
            assert time.monotonic() - began < STOPS_WITHIN
        said = server.stderr.read()
        assert f"stopped by {number.name}" in said
        assert "Traceback" not in said


@pytest.mark.skipif(not solver.is_installed(), reason="needs the solver")
def test_a_stop_leaves_no_semaphores_of_the_solvers_process():
    with process() as (server, address):
        assert status(address, "solver") == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 128 + signal.SIGTERM
        assert "leaked" not in server.stderr.read()  # to its end, which comes after that of the resource tracker


@pytest.mark.parametrize("line", [b"GET /api/v1/health HTTP/1.0", b"OPTIONS / HTTP/1.0", b"GET /%00 HTTP/1.0"])
def test_a_request_without_a_host_is_answered(started, line):
    with socket.create_connection(started.address, timeout=PATIENCE) as client:
        client.sendall(line + b"\r\n\r\n")
        expected = 404 if b"%00" in line else 405 if b"OPTIONS" in line else 200
        assert client.makefile("rb").readline().split()[1] == b"%d" % expected


def test_four_people_review_at_once_twenty_times_and_none_is_refused():
    players = ["solver" if solver.is_installed() else "pillar@puct:20", "pillar@puct:5", "pillar", "uct:20"]
    with process("--workers", 1) as (_, address), ThreadPoolExecutor(4) as people:
        for number in range(20):
            player = players[number % len(players)]
            assert list(people.map(status, [address] * 4, [player] * 4, [GAME] * 4, ["game"] * 4)) == [200] * 4


@pytest.mark.parametrize("player", ["uct:10", "small"])
def test_what_a_client_that_has_gone_was_waiting_for_is_not_computed(started, monkeypatch, player):
    assert status(started.address, player) == 200
    found, release, computed = started.opponents, threading.Event(), []
    queue = found._searches if player == "uct:10" else found._networks
    choose = opponents._choose
    monkeypatch.setattr(opponents, "_choose", lambda who, asked: [computed.append(len(asked)), choose(who, asked)][1])
    blocked = [socket.create_connection(started.address) for _ in range(5)]
    queue._executor.submit(release.wait)  # its only thread
    try:
        with socket.create_connection(started.address) as first:
            first.sendall(request(player))
            eventually(lambda: queue._inside == 1)
            for client in blocked:
                client.sendall(request(player, path="game", moves=GAME))
            eventually(lambda: queue._inside == 6)
            for client in blocked:
                client.close()
            eventually(lambda: queue._inside == 1)
            release.set()
            assert first.recv(12) == b"HTTP/1.1 200"
    finally:
        release.set()
    assert status(started.address, player) == 200
    assert computed == [1, 1]


def test_random_and_networks_do_not_wait_for_searches(started):
    assert status(started.address, "uct:10") == 200
    release = threading.Event()
    started.opponents._searches._executor.submit(release.wait)  # its only thread
    try:
        for player in ("random", "punisher", "small"):
            assert status(started.address, player) == 200
    finally:
        release.set()


def test_the_examples_of_the_documentation_work_and_a_page_of_another_host_may_use_the_api(tmp_path):
    text = Path("docs/website.md").read_text(encoding="utf-8")
    examples = dict(re.findall(r"```(sh|js)\n(.*?)```", text, re.DOTALL))
    (tmp_path / "index.html").write_text("<!doctype html><title>another host</title>")
    with pages.hosted(tmp_path) as other, process("--allow-origin", other.rstrip("/")) as (_, (host, port)):
        curl, fetch = (examples[kind].replace("127.0.0.1:8765", f"{host}:{port}") for kind in ("sh", "js"))
        answer = subprocess.run(shlex.split(curl), capture_output=True, text=True, check=True).stdout
        assert json.loads(answer)["moves"].startswith("4453")
        with pages.browser() as running:
            page = running.new_page()
            page.goto(other)
            assert len(page.evaluate(f"async () => {{ {fetch.split(' // ')[0]}; return analyses; }}")) == 5


def test_what_cannot_be_served_is_told_in_one_line(models, tmp_path, complaint, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "cannot be used" in complaint(serve, "--models", models, "--port", taken.getsockname()[1])
    assert "--host 192.0.2.1 cannot be used" in complaint(serve, "--models", models, "--host", "192.0.2.1", "--port", 0)
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    assert "--host :: cannot be used (dualstack" in complaint(serve, "--models", models, "--host", "::", "--port", 0)
    assert "no module no_such_module" in complaint(serve, "--players", "no_such_module:player", "--port", 0)
    assert f"--models {tmp_path / 'nope'}: no such folder" in complaint(serve, "--models", tmp_path / "nope")
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "best.keras").touch()
    assert f"--models {tmp_path}: no NAME/saved_model/1/saved_model.pb in it" in complaint(serve, "--models", tmp_path)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert complaint(serve).endswith(f"serve needs the web packages: {provenance.install_line('serve')}")


def test_it_prints_where_it_listens_and_answers_under_other_names_only_where_that_was_said(models, monkeypatch):
    served, said = [], []
    monkeypatch.setattr(serve, "say", said.append)
    monkeypatch.setattr(uvicorn.Config, "configure_logging", lambda _: None)

    def run(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        with closing(sockets[0]) as listener, socket.create_connection(addresses(said[-2:])[-1]):
            listener.accept()[0].close()
        served.append(server.config.app)

    def addresses(lines: list[str]) -> list[tuple[str, int]]:
        urls = [
            urlsplit(word) for line in lines for word in line.split() if word.startswith("http") and "docs" not in word
        ]
        return [(url.hostname, url.port) for url in urls]

    monkeypatch.setattr(uvicorn.Server, "run", run)
    allowed = {"allow_host": ("Home.example",), "allow_origin": ("https://app.example",)}
    for flags in ({}, {"host": "0.0.0.0"}, {"host": "::1"}, {"host": "::", **allowed}):
        assert serve.run(serve.ServeConfig(models=models, port=0, **flags)) == "stopped"
    assert sum("Anyone who can reach this machine can play" in line for line in said) == 2
    for app, expected in zip(served, (400, 400, 400, 200), strict=True):
        client = TestClient(app, base_url=URL)
        for host, code in (("home.example", expected), ("192.0.2.1:80", 200), ("[::1]:80", 200), ("localhost", 200)):
            assert client.get("/api/v1/players", headers={"Host": host}).status_code == code
        headers = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
        preflight = client.options("/api/v1/move", headers=headers | {"Access-Control-Request-Headers": "Content-Type"})
        assert preflight.headers.get("access-control-allow-origin") == {200: "https://app.example"}.get(expected)
        body = {"player": "nobody", "moves": "4"}
        reply = client.post("/api/v1/move", json=body, headers={"Origin": "https://app.example"})
        assert reply.headers.get("access-control-allow-origin") == {200: "https://app.example"}.get(expected)
    reply = TestClient(served[0], base_url=URL).get("/", headers={"Host": "evil.example"})
    assert "--allow-host evil.example" in reply.json()["error"]
    for wrong in ("example.org", "https://example.org/page", "*"):
        with pytest.raises(ValueError, match="scheme and host"):
            serve.ServeConfig(allow_origin=(wrong,))
