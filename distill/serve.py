"""A web page on which people play the trained networks, searches and the solver, and a JSON API for them.

    python -m distill.serve
    python -m distill.serve --players my_player:choose

In: the exported networks in `models/` and those that ship, listed again whenever the page is loaded, and players of
your own (`players/player.py`). Out: the page and the API on 127.0.0.1, which only this machine reaches, or with
`--host` on another of its addresses; /docs describes the API.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from distill.common import UserError, cli, cores, plugins, provenance, say
from distill.mcts import cache, compiling
from distill.networks import finding

CONNECTIONS = 512
"""Largest number of open connections; others get 503."""


@dataclass(frozen=True, kw_only=True)
class ServeConfig(cli.Settings):
    """Serve the page and the JSON API on this machine."""

    models: Path | None = cli.setting(None, "folder of networks to play, beside those that ship; none: models")
    players: tuple[str, ...] = cli.setting((), "your own players, each module:object")
    host: str = cli.setting("127.0.0.1", "IPv4 address to listen at; 0.0.0.0: all of this machine's")
    port: int = cli.setting(8765, "port to listen at; 0 takes a free one")
    max_simulations: int = cli.setting(100_000, "largest number of simulations of one search (up to 1,000,000)")
    workers: int = cli.setting(cores(), "searches at a time")

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            ipaddress.IPv4Address(self.host)
        except ValueError:
            raise ValueError(f"--host {self.host} must be an IPv4 address, such as 127.0.0.1 or 0.0.0.0") from None
        cli.check(all(map(plugins.is_spec, self.players)), "players", " ".join(self.players), "module:object")
        cli.check_within(self, "[0, 65535]", "port")
        cli.check_within(self, "[1, 1_000_000]", "max_simulations")
        cli.check_within(self, "[1, inf)", "workers")


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
    opponents = Opponents(folders, config.max_simulations, config.workers, config.players)
    with _listen(config.host, config.port) as listener:
        everywhere = config.host == "0.0.0.0"
        url = f"http://{'127.0.0.1' if everywhere else config.host}:{listener.getsockname()[1]}/"
        say(f"networks: {', '.join(opponents.models()) or f'none in {folders[0]} yet'}")
        for notice in opponents.catalogue().notices:
            say(notice)
        for search in cache.ENTRY_POINTS:
            compiling.prepare(search)  # now, so that no request waits for it
        say(f"play at {url} · API at {url}docs · Ctrl-C stops")
        if not ipaddress.IPv4Address(config.host).is_loopback:
            say("there is no password: everybody who reaches this machine can play")
        settings = uvicorn.Config(
            application(opponents, ["*"] if everywhere else [config.host, *HOSTS]),
            log_level="warning",
            access_log=False,
            limit_concurrency=CONNECTIONS,
        )
        server = uvicorn.Server(settings)
        # In a thread, because a notebook's own already runs an event loop. Ctrl-C interrupts the wait for the result.
        with ThreadPoolExecutor(1) as thread:
            try:
                # A copy, which stays open for the server where a second Ctrl-C closes ours.
                thread.submit(server.run, [listener.dup()]).result()
            finally:
                server.should_exit = True
    return "stopped"


def _listen(host: str, port: int) -> socket.socket:
    # asyncio sets TCP_NODELAY only on sockets whose protocol is named; without it the second packet of a reply waits
    # some 40 ms for the client's acknowledgement of the first.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # now, so that the printed address accepts connections
    except OSError as error:
        listener.close()
        wrong = f"--host {host}" if error.errno == errno.EADDRNOTAVAIL else f"--port {port}"
        raise UserError(f"{wrong} cannot be used ({error.strerror}); another may be free") from None
    return listener


main = cli.Command("serve", ServeConfig, run, PRESETS)

if __name__ == "__main__":
    raise SystemExit(main())
