"""A web page on which people play the trained networks, searches and the solver, and a JSON API for them.

    python -m distill.serve

In: the exported networks in `models/` and those that ship, looked for again whenever the page is loaded. Out: the
page and the API on 127.0.0.1, which is this machine alone, or with `--host` on another of its addresses; /docs
describes the API.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import threading
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from distill.common import UserError, cli, cores, provenance, say
from distill.networks import finding

if TYPE_CHECKING:
    import uvicorn

CONNECTIONS = 512
"""Open at a time, beyond which new ones get 503."""


@dataclass(frozen=True, kw_only=True)
class ServeConfig(cli.Settings):
    """Serve the page and the JSON API on this machine."""

    models: Path | None = cli.setting(None, "folder of the networks to play, beside those that ship; none: models")
    host: str = cli.setting("127.0.0.1", "the address to listen at; 0.0.0.0: all of this machine's, for its network")
    port: int = cli.setting(8765, "of that address; 0 takes any free one")
    open: bool = cli.setting(False, "show the page in the browser")
    max_simulations: int = cli.setting(100_000, "largest search that may be asked for")
    workers: int = cli.setting(cores(), "searches that run at a time")

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            ipaddress.IPv4Address(self.host)
        except ValueError:
            raise ValueError(f"--host {self.host} must be an IPv4 address, such as 127.0.0.1 or 0.0.0.0") from None
        cli.check(0 <= self.port <= 65535, "port", self.port, "from 0 to 65535")
        simulations = self.max_simulations
        cli.check(1 <= simulations <= 1_000_000, "max_simulations", simulations, "from 1 to 1,000,000")
        cli.check_least(self, workers=1)


PRESETS: cli.Presets = {"smoke": cli.smoke(models=cli.SMOKE_MODELS, port=0, max_simulations=1000)}


def run(config: ServeConfig) -> str:
    """Serve until interrupted."""
    try:
        import uvicorn

        from distill.web.api import HOSTS, application
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("distill"):
            raise
        raise UserError(f"serve needs the web packages: {provenance.install_line('serve')}") from None
    from distill.web.opponents import Opponents

    if config.models and not finding.networks([config.models], (finding.EXPORTED,)):
        wanted = f"no NAME/{finding.EXPORTED} in it" if config.models.is_dir() else "no such folder"
        raise UserError(f"--models {config.models}: {wanted}; python -m distill.export writes it")
    folders = finding.places(config.models)
    opponents = Opponents(folders, config.max_simulations, config.workers)
    catalogue = opponents.catalogue()
    with _listen(config.host, config.port) as listener:
        networks = [card.name for card in catalogue.players if card.kind == "network"]
        say(f"networks: {', '.join(networks) or f'none in {folders[0]} yet'}")
        for notice in catalogue.notices:
            say(notice)
        everywhere = config.host == "0.0.0.0"
        url = f"http://{'127.0.0.1' if everywhere else config.host}:{listener.getsockname()[1]}/"
        say(f"play at {url} · API at {url}docs · Ctrl-C stops")
        if not ipaddress.IPv4Address(config.host).is_loopback:
            say("whoever reaches this machine may play: there is no password")
        if config.open:
            webbrowser.open(url)  # the socket listens already: the browser waits until the server below answers
        settings = uvicorn.Config(
            application(opponents, ["*"] if everywhere else [config.host, *HOSTS]),
            log_level="warning",
            access_log=False,
            limit_concurrency=CONNECTIONS,
        )
        try:
            _serve(uvicorn.Server(settings), listener)
        finally:
            opponents.close()  # at a second Ctrl-C uvicorn leaves without it
    return "stopped"


def _serve(server: uvicorn.Server, listener: socket.socket) -> None:
    """Serve until stopped; in a thread where this one has an event loop that runs already, as a notebook's does."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        server.run(sockets=[listener])
        return
    serving = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    serving.start()
    try:
        serving.join()
    finally:
        server.should_exit = True
        serving.join()


def _listen(host: str, port: int) -> socket.socket:
    # asyncio sets TCP_NODELAY on what a socket accepts only where its protocol is named; without it a reply's second
    # packet waits some 40 ms until the client has acknowledged the first.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # so that whoever reads the address below may connect at once
    except OSError as error:
        listener.close()
        wrong = f"--host {host}" if error.errno == errno.EADDRNOTAVAIL else f"--port {port}"
        raise UserError(f"{wrong} cannot be used ({error.strerror}); another may be free") from None
    return listener


main = cli.Command("serve", ServeConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
