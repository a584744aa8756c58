"""The command `serve`, with a real server: SIGTERM stops it within seconds, whatever is open (`pages.listening`:
Ctrl-C); what cannot be served is one line; other names and origins are answered only where that was said.
"""

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvicorn
from starlette.testclient import TestClient

from distill import serve
from distill.common import provenance
from distill.players import solver
from tests import pages
from tests.pages import PATIENCE

STOPS_WITHIN = 60
"""Seconds, for a machine with much else to do: the running search of a million simulations is finished first."""
GAME = "54712566226127126621574377157631535333"


def request(player: str, moves: str = "4", path: str = "analysis", length: int | None = None) -> bytes:
    """A request's bytes; `length` is the Content-Length that it claims."""
    body = json.dumps({"player": player, "moves": moves}).encode()
    head = f"POST /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {length or len(body)}\r\n\r\n".encode() + body


def status(address: tuple[str, int], *question: str) -> int:
    """The status of the reply to a request over a connection of its own."""
    with socket.create_connection(address, timeout=PATIENCE) as client:
        client.sendall(request(*question))
        return int(client.makefile("rb").readline().split()[1])


def test_four_people_review_at_once_eight_times_and_none_is_refused(server):
    url = urlsplit(server)
    players = ["solver" if solver.is_installed() else "pillar@puct:20", "pillar@puct:5", "pillar", "uct:20"]
    with ThreadPoolExecutor(4) as people:
        for number in range(8):  # twice with each player
            asked = [(url.hostname, url.port)] * 4, [players[number % 4]] * 4, [GAME] * 4, ["game"] * 4
            assert list(people.map(status, *asked)) == [200] * 4


def test_the_examples_of_the_documentation_work_and_it_stops_within_seconds_whatever_is_open(tmp_path):
    text = Path("docs/http-api.md").read_text(encoding="utf-8")
    examples = dict(re.findall(r"```(sh|js)\n(.*?)```", text, re.DOTALL))
    (tmp_path / "index.html").write_text("<!doctype html><title>another host</title>")
    flags = ["--port", "0", "--workers", "1", "--max-simulations", "1000000"]
    with ExitStack() as stack:
        other = stack.enter_context(pages.hosted(tmp_path))
        command = [sys.executable, "-m", "distill.serve", *flags, "--allow-origin", other.rstrip("/")]
        server = stack.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        stack.callback(server.kill)
        host = next(line.split()[2] for line in server.stderr if "play at" in line)
        curl, fetch = (examples[kind].replace("http://127.0.0.1:8765/", host) for kind in ("sh", "js"))
        answer = subprocess.run(shlex.split(curl), capture_output=True, text=True, check=True).stdout
        assert json.loads(answer)["move"] in range(7)
        with pages.browser() as running:
            page = running.new_page()
            page.goto(other)
            assert len(page.evaluate(f"async () => {{ {fetch.split(' // ')[0]}; return analyses; }}")) == 5

        address = urlsplit(host).hostname, urlsplit(host).port
        if solver.is_installed():
            assert status(address, "solver") == 200
        room = json.loads(pages.fetched(f"{host}api/v1/rooms", any="body"))["room"]
        clients = [stack.enter_context(socket.create_connection(address)) for _ in range(37)]
        clients[0].sendall(b"POST /api/v1/analysis HTTP/1.1\r\nHost:")
        clients[1].sendall(request("random", length=1000))
        clients[2].sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")  # then kept open
        clients[3].sendall(f"GET /api/v1/rooms/{room} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())  # its stream
        for client in clients[5:]:
            client.sendall(request("uct:1000000"))
        assert status(address, "random") == 200
        began = time.monotonic()
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 128 + signal.SIGTERM
        assert time.monotonic() - began < STOPS_WITHIN
        said = server.stderr.read()  # to its end, which comes after that of the resource tracker
        assert "stopped by SIGTERM" in said
        assert not re.search("Traceback|leaked", said)


def test_what_cannot_be_served_is_told_in_one_line(models, tmp_path, complaint, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "Address already in use" in complaint(serve, "--models", models, "--port", taken.getsockname()[1])
    assert "192.0.2.1" in complaint(serve, "--models", models, "--host", "192.0.2.1", "--port", 0)
    assert "No module named 'no_such_module'" in complaint(serve, "--players", "no_such_module:player", "--port", 0)
    assert f"--models {tmp_path / 'nope'}: no such folder" in complaint(serve, "--models", tmp_path / "nope")
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "best.keras").touch()
    assert f"--models {tmp_path}: no NAME/saved_model/1/saved_model.pb in it" in complaint(serve, "--models", tmp_path)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert complaint(serve).endswith(f"the server needs the extra serve: {provenance.install_line('serve')}")


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
    codes = ((400, 400, 200, 400), (200,) * 4, (400, 400, 200, 200), (200, 400, 200, 400))
    for app, expected in zip(served, codes, strict=True):
        client, allows = TestClient(app, base_url="http://localhost"), app is served[-1]
        for host, code in zip(("home.example", "192.0.2.1:80", "localhost", "[::1]:80"), expected, strict=True):
            assert client.get("/api/v1/players", headers={"Host": host}).status_code == code
        asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "Content-Type"}
        preflight = client.options("/api/v1/analysis", headers={"Origin": "https://app.example", **asks})
        assert preflight.headers.get("access-control-allow-origin") == ("https://app.example" if allows else None)
        body = {"player": "nobody", "moves": "4"}
        reply = client.post("/api/v1/analysis", json=body, headers={"Origin": "https://app.example"})
        assert reply.headers.get("access-control-allow-origin") == ("https://app.example" if allows else None)
    for wrong in ("example.org", "https://example.org/page", "*"):
        with pytest.raises(ValueError, match="should match pattern"):
            serve.ServeConfig(allow_origin=(wrong,))
