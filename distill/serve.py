"""A web page on which people play the trained networks, searches and the solver, and a JSON API for them.

    python -m distill.serve
    python -m distill.serve --players my_player:choose

In: the exported networks in `models/` and those that ship, listed again whenever the page is loaded, and players of
your own (`players/player.py`). Out: the page and the API on 127.0.0.1, which only this machine reaches, or with
`--host` on another of its addresses; /docs.html describes the API.
"""

from __future__ import annotations

from distill.__main__ import start

if __name__ == "__main__":
    start("serve")

import socket
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, IPvAnyAddress

from distill.common import UserError, cli, cores, plugins, provenance, say
from distill.common.settings import CommandLine, Settings
from distill.mcts import compiling
from distill.networks import finding

Origin = Annotated[str, Field(pattern=r"^https?://[^/\s]+$")]
"""Scheme and host of a web site."""


class ServeConfig(Settings):
    """Serve the page and the JSON API on this machine."""

    command_line: ClassVar[CommandLine] = CommandLine(
        flags=(
            *("models", "players", "host", "port", "allow_host", "allow_origin", "allow_frame"),
            *("max_simulations", "workers"),
        ),
        examples=("--players my_player:choose", "--host 0.0.0.0 --port 80"),
        page="docs/website.md",
    )
    models: Path | None = None
    """folder of more networks, besides those that ship; default: models"""
    players: tuple[Annotated[str, Field(pattern=f"^{plugins.SPEC.pattern}$")], ...] = Field((), title="MODULE:OBJECT")
    """your own players"""
    host: IPvAnyAddress = Field(IPv4Address("127.0.0.1"), title="ADDRESS")
    """IP address to listen on; 0.0.0.0 or ::, all interfaces"""
    port: int = Field(8765, ge=0, le=65535)
    """port to listen on; 0 takes a free one"""
    allow_host: tuple[Annotated[str, Field(pattern="^[^:/*]+$")], ...] = Field((), title="HOST")
    """the only host names that it answers to, besides localhost and --host; default: with 0.0.0.0 or ::, any"""
    allow_origin: tuple[Origin, ...] = Field((), title="SCHEME://HOST")
    """web sites that may use the API, such as https://example.org"""
    allow_frame: tuple[Origin, ...] = Field((), title="SCHEME://HOST")
    """web sites that may show the page in a frame, such as https://example.org"""
    max_simulations: int = Field(100_000, ge=1, le=1_000_000)
    """largest number of simulations of one search (up to 1,000,000)"""
    workers: int = Field(cores(), ge=1)
    """searches that run in parallel"""


def run(config: ServeConfig) -> str:
    """Serve until interrupted."""
    with provenance.extra("serve", "the server"):
        import uvicorn

        from distill.web.api import application
    from distill.web.opponents import Opponents

    if config.models and not finding.networks([config.models], (finding.EXPORTED,)):
        missing = f"no NAME/{finding.EXPORTED} in it" if config.models.is_dir() else "no such folder"
        raise UserError(f"--models {config.models}: {missing}; python -m distill.export writes it")
    folders = finding.places(config.models)
    opponents = Opponents(folders, config.max_simulations, config.workers, config.players)
    address, is_v6 = (str(config.host), config.port), config.host.version == 6
    family = socket.AF_INET6 if is_v6 else socket.AF_INET
    # Listen now, so that the printed address accepts connections; at :: to IPv4 as well.
    with socket.create_server(address, family=family, dualstack_ipv6=str(config.host) == "::") as listener:
        # Accepted connections inherit it. Without it the second packet of a reply waits some 40 ms for the client's
        # acknowledgement of the first.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        say(f"networks: {', '.join(opponents.models()) or f'none in {folders[0]} yet'}")
        for notice in opponents.catalogue().notices:
            say(notice)
        for search in ("uct", "puct"):
            compiling.prepare(search)  # now, so that no request waits for it
        host = f"[{config.host}]" if is_v6 else str(config.host)
        url = f"http://{host}:{listener.getsockname()[1]}/"
        say(f"play at {url} · API at {url}docs.html · Ctrl-C stops")
        if not config.host.is_loopback:
            say("Anyone who can reach this machine can play.")
        # Another site that points its own name at this machine (DNS rebinding) must not reach a server for it alone.
        hosts = ["localhost", host, *config.allow_host]
        if config.host.is_unspecified and not config.allow_host:
            hosts = ["*"]
        app = application(opponents, hosts, config.allow_origin, config.allow_frame)
        how: dict[str, Any] = {"http": "h11", "ws": "none", "log_level": "warning", "access_log": False}
        # Requests in progress have a second to finish when the server stops.
        uvicorn.Server(uvicorn.Config(app, timeout_graceful_shutdown=1, **how)).run([listener])
    return "stopped"


main = cli.Command("distill serve", ServeConfig, run, cli.smoke(models=cli.SMOKE_MODELS, port=0, max_simulations=1000))
