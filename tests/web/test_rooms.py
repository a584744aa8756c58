"""The rooms of the API, in which two people play: a room takes the next legal move only, its stream has every change,
and the number of rooms is bounded.
"""

import asyncio
import time

import pytest
from starlette.exceptions import HTTPException

from distill.web import rooms
from distill.web.rooms import NextMoves, Rooms


async def refused(status: int, request) -> None:
    with pytest.raises(HTTPException) as error:
        await request
    assert error.value.status_code == status


def test_a_room_takes_the_next_move_only(client):
    name = client.post("/api/v1/rooms").json()["room"]
    for moves, status in (("4", 204), ("44", 204), ("44", 409), ("4", 409), ("41", 409), ("", 409), ("4455", 409)):
        assert client.post(f"/api/v1/rooms/{name}", json={"moves": moves}).status_code == status, moves
    for length in range(3, 7):
        assert client.post(f"/api/v1/rooms/{name}", json={"moves": "4" * length}).status_code == 204
    assert client.post(f"/api/v1/rooms/{name}", json={"moves": "4444444"}).status_code == 422
    assert "full" in client.post(f"/api/v1/rooms/{name}", json={"moves": "4444444"}).json()["error"]
    path = "/api/v1/rooms/nowhere"
    assert client.get(path).status_code == client.post(path, json={"moves": "4"}).status_code == 404


def test_a_stream_has_every_change_and_ends_with_its_room(monkeypatch):
    async def run() -> None:
        opened = Rooms()
        name = (await opened.open())["room"]
        stream = opened.follow(name)

        async def told() -> list:
            return list((await anext(stream)).values())

        assert await told() == ["", 0, 1]
        for moves in ("4", "41", "414", "4141", "41414", "414141", "4141414"):
            await opened.play(name, NextMoves(moves=moves))
            assert await told() == [moves, 0, 1]
        await refused(422, opened.play(name, NextMoves(moves="41414141")))
        await opened.play(name, NextMoves(moves=""))
        assert await told() == ["", 1, 1]
        monkeypatch.setattr(rooms, "MOST", 1)
        waiting = asyncio.create_task(anext(stream, "ended"))
        await asyncio.sleep(0)
        await opened.open()
        assert await waiting == "ended"

    asyncio.run(run())


def test_rooms_are_bounded_and_expire(monkeypatch):
    async def run() -> None:
        monkeypatch.setattr(rooms, "MOST", 3)
        opened = Rooms()
        first, second, third = [(await opened.open())["room"] for _ in range(3)]
        await opened.play(first, NextMoves(moves="4"))
        fourth = (await opened.open())["room"]
        await refused(404, opened.use(second))
        assert [(await opened.use(name)).moves for name in (first, third, fourth)] == ["4", "", ""]
        now = time.monotonic()
        monkeypatch.setattr(rooms.time, "monotonic", lambda: now + rooms.LIFETIME + 1)
        await opened.use(third)
        last = (await opened.open())["room"]
        assert [*opened._rooms] == [third, last]

    asyncio.run(run())
