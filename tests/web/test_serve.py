"""The command `serve`. Properties:

- a connection is served with TCP_NODELAY, or every reply on a kept one would wait for the client's acknowledgement;
- a taken port, a wrong flag and missing packages are told in one line;
- it may be called where an event loop runs already;
- other machines may ask only where that was said.
"""

from __future__ import annotations

import asyncio
import http.client
import socket
import sys
import threading
from contextlib import closing
from queue import Queue

import pytest
import uvicorn
from starlette.testclient import TestClient

from distill import serve
from distill.common import provenance
from distill.web.opponents import Opponents
from tests.api_helpers import URL


def test_a_connection_is_served_without_waiting_for_acknowledgements(monkeypatch):
    started: Queue[uvicorn.Server] = Queue()

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            started.put(self)

    async def nothing(_):
        pass

    monkeypatch.setattr(uvicorn, "Server", Server)
    monkeypatch.setattr(Opponents, "warm_up", nothing)  # seconds of work for nobody
    serving = threading.Thread(target=serve.run, args=[serve.ServeConfig(port=0)])
    serving.start()
    server = started.get(timeout=60)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as client:
            client.request("GET", "/api/players")
            assert client.getresponse().read().startswith(b'{"players"')
            (connection,) = server.server_state.connections
            accepted = connection.transport.get_extra_info("socket")
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    finally:
        server.should_exit = True
        serving.join()


def test_a_taken_port_is_told_in_one_line(models, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert serve.main(["--models", str(models), "--port", str(taken.getsockname()[1])]) == 1
    error = capsys.readouterr().err
    assert "cannot be used" in error
    assert "Traceback" not in error


def test_an_address_that_is_not_this_machines_is_told_in_one_line(models, capsys):
    assert serve.main(["--models", str(models), "--host", "192.0.2.1", "--port", "0"]) == 1
    assert "--host 192.0.2.1 cannot be used" in capsys.readouterr().err


def test_other_machines_may_ask_only_where_that_was_said(models, monkeypatch):
    served, said = [], []
    monkeypatch.setattr(serve, "say", said.append)
    monkeypatch.setattr(uvicorn.Config, "configure_logging", lambda _: None)

    def run(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        sockets[0].close()
        served.append(server.config.app)

    monkeypatch.setattr(uvicorn.Server, "run", run)
    for flags in ({}, {"host": "0.0.0.0"}):
        assert serve.run(serve.ServeConfig(models=models, port=0, **flags)) == "stopped"
    assert sum("there is no password" in line for line in said) == 1
    for app, status in zip(served, (400, 200), strict=True):
        headers = {"Host": "another.example"}
        assert TestClient(app, base_url=URL).get("/api/players", headers=headers).status_code == status


def test_a_notebook_with_an_event_loop_of_its_own_may_serve(models, monkeypatch):
    async def cell() -> str:
        return serve.run(serve.ServeConfig(models=str(models), port=0))

    def serving(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        sockets[0].close()
        asyncio.run(asyncio.sleep(0))  # as uvicorn does: refused where a loop runs already

    monkeypatch.setattr(uvicorn.Server, "run", serving)
    assert asyncio.run(cell()) == "stopped"


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--port", "65536"], "--port 65536 must be from 0 to 65535"),
        (["--workers", "0"], "--workers 0 must be at least 1"),
        (["--max-simulations", "0"], "--max-simulations 0 must be from 1 to 1,000,000"),
        (["--max-simulations", "2000000"], "must be from 1 to 1,000,000"),
        (["--host", "everywhere"], "must be an IPv4 address"),
        (["--players", "nobody"], "--players nobody must be module:object"),
    ],
)
def test_a_wrong_flag_exits_with_2(flags, line, capsys):
    assert serve.main(flags) == 2
    assert line in capsys.readouterr().err


def test_a_player_of_your_own_that_cannot_be_imported_is_one_line(capsys):
    assert serve.main(["--players", "no_such_module:player", "--port", "0"]) == 1
    assert "no module no_such_module" in capsys.readouterr().err


def test_missing_packages_are_told_with_the_line_that_installs_them(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert serve.main([]) == 1
    assert f"serve needs the web packages: {provenance.install_line('serve')}\n" in capsys.readouterr().err


def test_a_folder_that_is_named_must_hold_a_network(tmp_path, capsys):
    assert serve.main(["--models", str(tmp_path / "nope")]) == 1
    assert f"--models {tmp_path / 'nope'}: no such folder" in capsys.readouterr().err
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "best.keras").touch()
    assert serve.main(["--models", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert f"--models {tmp_path}: no NAME/saved_model/1/saved_model.pb in it" in error
    assert error.count("\n") == 1
