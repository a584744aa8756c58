"""The command `serve`. Properties:

- a connection is served with TCP_NODELAY, or every reply on a kept one would wait for the client's acknowledgement;
- a taken port, a folder without networks and missing packages are told in one line;
- it may be called where an event loop runs already;
- other machines may ask only where that was said.
"""

import asyncio
import http.client
import socket
import sys
import threading
from contextlib import closing
from queue import Queue

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
            client.request("GET", "/api/v1/players")
            assert client.getresponse().read().startswith(b'{"players"')
            (connection,) = server.server_state.connections
            accepted = connection.transport.get_extra_info("socket")
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    finally:
        server.should_exit = True
        serving.join()


def test_what_cannot_be_served_is_told_in_one_line(models, tmp_path, complaint, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "cannot be used" in complaint(serve, "--models", models, "--port", taken.getsockname()[1])
    assert "--host 192.0.2.1 cannot be used" in complaint(serve, "--models", models, "--host", "192.0.2.1", "--port", 0)
    assert "no module no_such_module" in complaint(serve, "--players", "no_such_module:player", "--port", 0)
    assert f"--models {tmp_path / 'nope'}: no such folder" in complaint(serve, "--models", tmp_path / "nope")
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "best.keras").touch()
    assert f"--models {tmp_path}: no NAME/saved_model/1/saved_model.pb in it" in complaint(serve, "--models", tmp_path)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert complaint(serve).endswith(f"serve needs the web packages: {provenance.install_line('serve')}")


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
        assert TestClient(app, base_url=URL).get("/api/v1/players", headers=headers).status_code == status


def test_a_notebook_with_an_event_loop_of_its_own_may_serve(models, monkeypatch):
    async def cell() -> str:
        return serve.run(serve.ServeConfig(models=str(models), port=0))

    def serving(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        sockets[0].close()
        asyncio.run(asyncio.sleep(0))  # as uvicorn does: refused where a loop runs already

    monkeypatch.setattr(uvicorn.Server, "run", serving)
    assert asyncio.run(cell()) == "stopped"
