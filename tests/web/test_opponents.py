"""The opponents behind the API: a full queue answers 503, a model that is trained again is loaded again, and what
cannot be used is named.
"""

import asyncio
import functools
import os
import shutil
import threading
from pathlib import Path

import httpx2
import numpy as np
import pytest
from helpers import REFERENCE
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from distill.common import UserError
from distill.game import rules
from distill.networks import finding
from distill.web import api, opponents
from distill.web.opponents import Opponents
from tests.api_helpers import URL, ask, refusal
from tests.network_helpers import write_onnx


def test_more_than_the_queue_takes_is_told_to_come_again(models):
    app = api.application(serving := Opponents([models], 1000, 1))
    release = threading.Event()
    blocked = [{"player": "uct:10", "moves": "4"}] * (opponents.SEARCH_QUEUE + 5)

    async def flood():
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=URL, timeout=60) as client:
            holding = asyncio.create_task(serving._searches.run([release.wait]))
            await asyncio.sleep(0)
            asked = [asyncio.create_task(client.post("/api/v1/analysis", json=body)) for body in blocked]
            refused = await asyncio.gather(*asked[-6:])
            release.set()
            await holding
            return refused, [await task for task in asked], await client.post("/api/v1/analysis", json=blocked[0])

    refused, everybody, afterwards = asyncio.run(flood())
    assert {reply.status_code for reply in refused} == {503}
    assert refused[0].headers["Retry-After"] == "1"
    assert sorted({reply.status_code for reply in everybody}) == [200, 503]
    assert afterwards.status_code == 200


def test_a_model_trained_again_is_loaded_again(models, tmp_path):
    folder = shutil.copytree(models / "small", tmp_path / "small")
    client = TestClient(api.application(Opponents([tmp_path], 1000, 1)), base_url=URL)
    before, again = (ask(client, player="small", moves="4").json()["policy"] for _ in range(2))
    assert again == before
    (tmp_path / "random").symlink_to(folder)
    assert [card["name"] for card in client.get("/api/v1/players").json()["players"] if card["kind"] == "network"] == [
        "small"
    ], "random is another player"
    stamp = (folder / finding.EXPORTED).stat()
    folder.rename(tmp_path / "old")
    shutil.copytree(REFERENCE / "cnn", folder)
    os.utime(folder / finding.EXPORTED, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    after = ask(client, player="small", moves="4").json()["policy"]
    assert np.abs(np.subtract(before, after)).max() > 1e-3
    shutil.copy(models / "small" / "best.keras", folder)  # trained again and not exported
    after = ask(client, player="small", moves="4").json()["policy"]
    assert np.abs(np.subtract(before, after)).max() < 1e-4


PLAYER = """
import numpy as np

def rightmost(boards, seeds):
    return 6 - (boards[:, 0, ::-1] == 0).argmax(1)

def illegal(boards, seeds):
    return np.full(len(boards), 6)

def fails(boards, seeds):
    return np.stack([3, 3] if len(boards) == 2 else [])
"""


def test_your_own_players_are_listed_and_answer_and_no_request_imports_a_module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my_page_player.py").write_text(PLAYER)
    own = ("my_page_player:rightmost", "my_page_player:illegal", "my_page_player:fails")
    client = TestClient(api.application(Opponents([tmp_path], 1000, 1, own)), base_url=URL)
    cards = {card["name"]: card for card in client.get("/api/v1/players").json()["players"]}
    assert (cards[own[0]]["kind"], cards[own[0]]["title"]) == ("custom", "rightmost")
    silent = {"policy": None, "value": None, "scores": None}
    assert ask(client, player=own[0], moves="7").json() == {"player": own[0], "move": 6, **silent}
    assert "illegal move" in refusal(client, 500, player=own[1], moves="777777")
    problem = f"{own[2]}: ValueError: need at least one array to stack ({tmp_path}/my_page_player.py:11)"
    assert refusal(client, 500, player=own[2], moves="7") == problem
    assert "is unknown" in refusal(client, 404, player="my_page_player:PLAYER", moves="7")
    assert "is unknown" in refusal(client, 404, player="antigravity:fly", moves="7")
    with pytest.raises(UserError, match="module 'my_page_player' has no attribute 'left'"):
        Opponents([tmp_path], 1000, 1, ["my_page_player:left"])


def test_the_solver_comes_back_after_its_process_was_killed(models):
    async def kill_and_ask():
        serving = Opponents([models], 1000, 1)
        queue = serving._solver
        with pytest.raises(HTTPException, match="cannot be started, or has died"):
            await queue.run([functools.partial(os._exit, 1)])
        opinion = await serving.analyse("solver", [rules.from_moves("414243")])
        serving.close()
        return opinion[0]

    assert asyncio.run(kill_and_ask()).move == 3


NAN = np.full((1, 7), np.nan, np.float32)


@pytest.mark.parametrize(
    ("word", "changed", "status", "line"),
    [
        ("trained", {"policy": NAN}, 500, "returned a probability that is NaN, outside [0, 1] or of a full"),
        ("trained@puct:20", {"logits": NAN}, 500, "returned a logit that is NaN or infinite on 1 of 1 boards"),
        ("trained", {"policy": None}, 500, "not a model of distill (outputs ['logits', 'move',"),
        ("trained", {"argument": "planes"}, 500, "not a readable ONNX model"),
    ],
)
def test_a_network_whose_outputs_cannot_be_used_is_told_of_and_the_server_goes_on(
    tmp_path, word, changed, status, line
):
    write_onnx(file := tmp_path / "trained" / "saved_model" / "model.onnx", **changed)
    (file.parent / "1").mkdir()
    (file.parent / "1" / "saved_model.pb").touch()
    client = TestClient(api.application(Opponents([tmp_path], 1000, 1)), base_url=URL)
    error = refusal(client, status, player=word, moves="111111")
    assert error.startswith((f"{word}: ", f"{file}: "))
    assert line in error
    assert ask(client, player="random", moves="111111").status_code == 200
