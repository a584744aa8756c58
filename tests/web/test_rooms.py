"""The rooms of the API, in which two people play: a room takes the next legal move only, its stream has every change,
and the number of rooms is bounded.
"""

import asyncio
import json
import time

import pytest
from starlette.exceptions import HTTPException

from distill.web import rooms
from distill.web.rooms import Rooms


def refused(status: int, call, *values) -> None:
    with pytest.raises(HTTPException) as error:
        call(*values)
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
        name = opened.open()
        stream = opened.follow(name, opened.use(name))

        async def told() -> list:
            return list(json.loads((await anext(stream)).removeprefix("data: ")).values())

        assert await told() == ["", 0, 1]
        for moves in ("4", "41", "414", "4141", "41414", "414141", "4141414"):
            opened.play(name, moves)
            assert await told() == [moves, 0, 1]
        refused(422, opened.play, name, "41414141")
        opened.play(name, "")
        assert await told() == ["", 1, 1]
        monkeypatch.setattr(rooms, "BEAT", 0.01)
        assert await told() == ["", 1, 1], "a message without a change, for proxies"
        opened._rooms.clear()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    asyncio.run(run())


def test_rooms_are_bounded_and_expire(monkeypatch):
    monkeypatch.setattr(rooms, "MOST", 3)
    opened = Rooms()
    first, second, third = (opened.open() for _ in range(3))
    opened.play(first, "4")
    fourth = opened.open()
    refused(404, opened.use, second)
    assert [opened.use(name).moves for name in (first, third, fourth)] == ["4", "", ""]
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + rooms.LIFETIME + 1)
    opened.use(third)
    last = opened.open()
    assert [*opened._rooms] == [third, last]
