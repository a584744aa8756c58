"""Games of two people who share a link, kept in memory: the moves, and a stream of them for whoever has the link open.

There are no accounts: whoever knows a room's name, which cannot be guessed, may move in it. The client knows whose turn
it is. A room is dropped a day after its last use; where there are too many, the least recently used one goes.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from distill.game import rules
from distill.web.messages import Moves, position_after

MOST = 1000
"""Largest number of rooms."""
CLIENTS = 8
"""Largest number of open streams of a room."""
LIFETIME = 24 * 3600
"""Seconds without use after which a room is dropped."""
BEAT = 15
"""Seconds after which a stream repeats its last message, so that proxies keep the connection open."""


class NextMoves(BaseModel):
    """The moves of a room's game with one more; none begin the next game once this one is over."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"moves": "4453"}]})

    moves: Moves


@dataclass
class Room:
    moves: str = ""
    games: int = 0  # before this one
    clients: int = 0
    used: float = field(default_factory=time.monotonic)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self) -> None:
        """Wake the streams."""
        self.changed.set()
        self.changed = asyncio.Event()


class Rooms:
    """All rooms, the least recently used one first."""

    def __init__(self) -> None:
        self._rooms: dict[str, Room] = {}

    def open(self) -> str:
        """The name of a new room."""
        for name, room in [*self._rooms.items()]:
            if len(self._rooms) >= MOST or time.monotonic() - room.used > LIFETIME:
                del self._rooms[name]
        name = secrets.token_urlsafe(9)
        self._rooms[name] = Room()
        return name

    def use(self, name: str) -> Room:
        """The room of this name. Raises HTTPException (404)."""
        if name not in self._rooms:
            raise HTTPException(404, "this game has expired, or its link is incomplete")
        room = self._rooms[name] = self._rooms.pop(name)
        room.used = time.monotonic()
        return room

    def play(self, name: str, moves: str) -> None:
        """One more move, or the next game. Raises HTTPException (404, 409, 422)."""
        room = self.use(name)
        position_after(moves)
        is_next_game = not moves and rules.is_over(rules.from_moves(room.moves))
        if not is_next_game and (not moves or moves[:-1] != room.moves):
            raise HTTPException(409, "the game has gone on; its stream has the moves")
        room.moves, room.games = moves, room.games + is_next_game
        room.tell()

    async def follow(self, name: str, room: Room) -> AsyncIterator[str]:
        """Server-sent events: the game now and after every change."""
        room.clients += 1
        room.tell()
        try:
            while self._rooms.get(name) is room:
                changed = self.use(name).changed
                message = {"moves": room.moves, "games": room.games, "clients": room.clients}
                yield f"data: {json.dumps(message)}\n\n"
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), BEAT)
        finally:
            room.clients -= 1
            room.tell()


def routes(rooms: Rooms) -> APIRouter:
    """The part of the API that rooms answer."""
    router = APIRouter(prefix="/api/v1/rooms")

    @router.post("")
    async def open_room() -> dict[str, str]:
        """Open a room for a game of two people; the reply has its name, which is part of the link."""
        return {"room": rooms.open()}

    @router.post("/{name}", status_code=204)
    async def play(name: str, body: NextMoves) -> None:
        """Play one more move, or begin the next game."""
        rooms.play(name, body.moves)

    @router.get("/{name}", response_class=StreamingResponse)
    async def follow(name: str) -> StreamingResponse:
        """Server-sent events, {"moves", "games", "clients"}: the room's game now and after every change."""
        room = rooms.use(name)
        if room.clients >= CLIENTS:
            raise HTTPException(503, "too many people have this game open")
        unbuffered = {"X-Accel-Buffering": "no"}  # nginx must not wait for the end of this reply
        return StreamingResponse(rooms.follow(name, room), media_type="text/event-stream", headers=unbuffered)

    return router
