"""Games of two people who share a link, kept in memory: the moves, and a stream of them for whoever has the link open.

There are no accounts: whoever knows a room's name, which cannot be guessed, may move in it. The client knows whose turn
it is. A room is dropped a day after its last use; where there are too many, the least recently used one goes.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Depends
from fastapi.sse import EventSourceResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from distill.game import rules
from distill.web.messages import Moves, position_after

MOST = 1000
"""Largest number of rooms."""
LIFETIME = 24 * 3600
"""Seconds without use after which a room is dropped."""


class NextMoves(BaseModel, extra="forbid", json_schema_extra={"examples": [{"moves": "4453"}]}):
    """The moves of a room's game with one more; none begin the next game once this one is over."""

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
    """All rooms, the least recently used one first; `open`, `play` and `follow` answer requests."""

    def __init__(self) -> None:
        self._rooms: dict[str, Room] = {}

    async def open(self) -> dict[str, str]:
        """Open a room for a game of two people; the reply has its name, which is part of the link."""
        for name, room in [*self._rooms.items()]:
            if len(self._rooms) >= MOST or time.monotonic() - room.used > LIFETIME:
                self._rooms.pop(name).tell()
        name = secrets.token_urlsafe(9)
        self._rooms[name] = Room()
        return {"room": name}

    async def play(self, name: str, body: NextMoves) -> None:
        """Play one more move, or begin the next game."""
        room, moves = await self.use(name), body.moves
        position_after(moves)
        is_next_game = not moves and rules.is_over(rules.from_moves(room.moves))
        if not is_next_game and (not moves or moves[:-1] != room.moves):
            raise HTTPException(409, "the game has gone on; its stream has the moves")
        room.moves, room.games = moves, room.games + is_next_game
        room.tell()

    async def follow(self, name: str) -> AsyncIterator[dict[str, Any]]:
        """Server-sent events, {"moves", "games", "clients"}: the room's game now and after every change."""
        room = await self.use(name)
        room.clients += 1
        room.tell()
        try:
            while self._rooms.get(name) is room:
                changed = room.changed
                yield {"moves": room.moves, "games": room.games, "clients": room.clients}
                await changed.wait()
        finally:
            room.clients -= 1
            room.tell()

    async def use(self, name: str) -> Room:
        """The room of this name. Raises HTTPException (404)."""
        if name not in self._rooms:
            raise HTTPException(404, "this game has expired, or its link is incomplete")
        room = self._rooms[name] = self._rooms.pop(name)
        room.used = time.monotonic()
        return room


def routes(rooms: Rooms) -> APIRouter:
    """The part of the API that rooms answer."""
    router = APIRouter(prefix="/api/v1/rooms")
    router.post("")(rooms.open)
    router.post("/{name}", status_code=204)(rooms.play)
    # A stream has begun once `follow` runs, so a room that does not exist is refused before.
    router.get("/{name}", response_class=EventSourceResponse, dependencies=[Depends(rooms.use)])(rooms.follow)
    return router
