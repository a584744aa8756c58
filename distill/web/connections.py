"""uvicorn with time limits: no client holds a connection, the server's end, or other people up.

uvicorn's own limits are not enough: it waits without end for a request that is half sent and for a client that does
not read, its keep-alive limit begins after the first reply, and over `limit_concurrency` it refuses everybody.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from distill.web.guard import TASK

CONNECTIONS = 512
"""Largest number of open connections."""
PATIENCE = 10.0
"""Seconds in which a client must send a whole request, or read what was sent to it."""
GRACE = 1
"""Seconds for the requests in progress when the server stops."""


class Connection(H11Protocol):
    """A connection that is dropped if the client keeps it waiting for PATIENCE seconds.

    With CONNECTIONS open, a new one takes the place of the one that has waited longest for its client.
    """

    deadline: asyncio.TimerHandle | None = None
    """Set while the server waits for the client."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > CONNECTIONS:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.deadline:
            self.deadline.cancel()
        if self.cycle and isinstance(task := self.cycle.scope.get(TASK), asyncio.Task):
            task.cancel()  # so that queued work is dropped; without effect on a task that is done

    def _make_room(self) -> None:
        others = [each for each in _open(self.server_state) if each is not self]
        waiting = {each.deadline.when(): each for each in others if each.deadline}
        if len(others) >= CONNECTIONS and waiting:
            waiting[min(waiting)].transport.abort()

    def _watch(self) -> None:
        """Start the clock where the server waits for the client; one byte of a request does not start it again."""
        request = self.cycle
        is_waiting = request is None or request.more_body or request.response_complete or self.flow.write_paused
        if is_waiting and not self.deadline:
            self.deadline = self.loop.call_later(PATIENCE, self.transport.abort)
        elif self.deadline and not is_waiting:
            self.deadline.cancel()
            self.deadline = None


class Server(uvicorn.Server):
    """A server that stops within seconds, whatever is open: uvicorn would wait for every client."""

    def __init__(self, app: Any) -> None:
        settings = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=GRACE,  # for connections that were made while the server stops
            limit_concurrency=CONNECTIONS + 1,  # where all are in use, none of them waiting for its client
        )
        super().__init__(settings)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for connection in _open(self.server_state):
            if connection.deadline:
                connection.transport.abort()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=GRACE)
        for connection in _open(self.server_state):
            connection.transport.abort()
        await super().shutdown(sockets)


def _open(state: ServerState) -> list[Connection]:
    return [each for each in state.connections if isinstance(each, Connection) and not each.transport.is_closing()]
