"""The command `serve` and its JSON API. Properties:

- a position given as moves and as a board gets the same answer, in columns 0-6, for the side to move;
- a network answers what its SavedModel says, a search its shares of visits, the solver exact scores;
- a network with search, and its value head alone, answer as `players.make` does, many at once as each alone;
- the reply to a move says where the stone fell and whether it won, drew or neither;
- floating stones, wrong counts, games that are won or over, unknown players, too many simulations, bodies over the
  limit, foreign hosts and anything that is no such request: 4xx with one line;
- more requests than the queue takes: 503 with Retry-After, and the next one is answered again;
- requests that come together are answered by the network in one batch, each with its own board's outputs;
- a model that is trained again while the server runs is loaded again; names never reach outside the models' folder;
- searches that are not compiled yet are announced and waited for, while networks answer;
- the solver's process comes back after it was killed;
- fuzzed requests over the schema: no 5xx, and every reply is as the schema says;
- a connection is served with TCP_NODELAY, or every reply on a kept one would wait for the client's acknowledgement;
- page and API load nothing from elsewhere; the solver's licence is named where it is installed;
- a taken port, a wrong flag and missing packages are told in one line.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import socket
import sys
import threading
from contextlib import closing
from pathlib import Path
from queue import Queue

import httpx2
import hypothesis
import numpy as np
import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from schemathesis import GenerationMode
from starlette.testclient import TestClient

from distill import serve
from distill.base import provenance
from distill.game import encoding, rules
from distill.nets import saved
from distill.players import words
from distill.players.players import make
from distill.web import api, opponents, work
from distill.web.opponents import Opponents
from tests.pages import small_network

URL = "http://127.0.0.1"
FULL_LEFT = "1111112"  # column 1 is full


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    core = small_network()
    saved.write(core, folder / "small" / "saved_model" / "1")
    (folder / "reference").mkdir()
    (folder / "reference" / "shipped").symlink_to(folder / "small")
    (folder / "unfinished").mkdir()
    return folder


@pytest.fixture(scope="module")
def app(models):
    return api.application(Opponents([models], max_simulations=1000, workers=2))


@pytest.fixture(scope="module")
def client(app):
    return TestClient(app, base_url=URL)


def ask(client, path="/api/analysis", **body):
    return client.post(path, json=body)


def refusal(client, status: int, **body) -> str:
    """The one line with which a request is refused with this status."""
    reply = ask(client, **body)
    assert reply.status_code == status, reply.text
    assert list(reply.json()) == ["error"]
    assert "\n" not in reply.json()["error"]
    return reply.json()["error"]


def board_of(moves: str) -> list[list[int]]:
    position = rules.from_moves(moves)
    return encoding.boards([position.current], [position.mask])[0].tolist()


@pytest.mark.parametrize("player", ["small", "uct:200", "punisher", "solver"])
def test_moves_and_a_board_get_the_same_answer(client, player):
    by_moves = ask(client, player=player, moves="44532", seed=3).json()
    by_board = ask(client, player=player, board=board_of("44532"), seed=3).json()
    assert by_moves == by_board


def test_the_name_of_a_network_that_ships_may_be_short(client):
    short, whole = (ask(client, player=name, moves="44").json() for name in ("shipped", "reference/shipped"))
    assert short | {"player": whole["player"]} == whole


def test_a_network_answers_what_its_saved_model_says(client, models):
    reply = ask(client, player="small", moves=FULL_LEFT).json()
    expected = saved.load(models / "small")(np.array(board_of(FULL_LEFT), np.int8))
    np.testing.assert_allclose(reply["policy"], expected["policy"], atol=1e-6)
    assert reply["policy"][0] == 0
    assert reply["column"] == expected["move"]
    assert reply["value"] == pytest.approx(float(expected["value"]), abs=1e-6)
    assert reply["scores"] is None


@pytest.mark.parametrize("mode", ["puct:20", "gumbel:16", "value"])
def test_a_network_in_another_mode_answers_as_that_player_does(client, models, mode):
    games = [moves for moves in ("", "4", "44", "4453", "445532", FULL_LEFT, "12345671") for _ in range(3)]
    together = gather(
        api.application(Opponents([models], 1000, 1)), [{"player": f"small@{mode}", "moves": moves} for moves in games]
    )
    replies = [reply.json() for reply in together]
    player = make(f"{models / 'small'}@{mode}") if mode == "value" else None
    for moves, reply in zip(games, replies, strict=True):
        assert reply == ask(client, player=f"small@{mode}", moves=moves).json(), "whoever else asks"
        if player is not None:
            position = rules.from_moves(moves)
            current, mask = (np.array([bits], np.uint64) for bits in (position.current, position.mask))
            choices = player.play(current, mask, np.zeros(1, np.uint64))
            assert (reply["column"], reply["policy"]) == (choices.moves[0], None)
            assert reply["value"] == pytest.approx(choices.value[0], abs=1e-6)
        else:
            assert sum(reply["policy"]) == pytest.approx(1)


def test_a_network_with_search_takes_a_win_and_is_in_the_catalogue(client):
    reply = ask(client, player="small@puct:50", moves="414243").json()
    assert (reply["column"], reply["value"]) == (3, 1)
    cards = [card for card in client.get("/api/players").json()["players"] if card["kind"] == "guided"]
    assert cards == [], "this network has no card that tells of a value head"


@pytest.mark.parametrize("player", ["uct:500", "mcts-solver:500"])
def test_a_search_answers_with_its_share_of_visits_and_takes_a_win(client, player):
    reply = ask(client, player=player, moves="414243").json()
    assert reply["column"] == 3
    assert sum(reply["policy"]) == pytest.approx(1)
    assert reply["policy"][3] == max(reply["policy"])
    assert reply["value"] > 0.5


def test_the_solver_answers_with_exact_scores(client):
    reply = ask(client, player="solver", moves="414243").json()
    assert reply["scores"][3] == 18  # four stones of the first player: 22 - 4
    assert reply["column"] == 3
    assert reply["value"] == 1
    full = ask(client, player="solver", moves=FULL_LEFT).json()
    assert full["scores"][0] is None


def test_a_seed_repeats_a_players_chance(client):
    replies = [ask(client, player="random", moves="", seed=seed).json()["column"] for seed in [*range(20), *range(20)]]
    assert replies[:20] == replies[20:]
    assert len(set(replies)) > 3


@pytest.mark.parametrize(
    ("moves", "outcome", "row"),
    [("44", "open", 3), ("414243", "won", 2), ("54712566226127126621574377157631535333444", "drawn", 0)],
)
def test_the_reply_to_a_move_says_what_it_leads_to(client, moves, outcome, row):
    reply = ask(client, "/api/move", player="punisher", moves=moves, seed=1)
    move = reply.json()
    after = rules.play(rules.from_moves(moves), move["column"])
    assert move["board"] == encoding.boards([after.current], [after.mask])[0].tolist()
    assert move["moves"] == f"{moves}{move['column'] + 1}"
    assert move["outcome"] == outcome
    assert move["board"][move["row"]][move["column"]] == -1
    if outcome != "open":
        assert move["row"] == row


EMPTY_ROWS = [[0] * 7 for _ in range(5)]
DRAWN = "121212212121343434434343565656656565777777"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"board": [[0, 0, 0, -1, 0, 0, 0], *EMPTY_ROWS]}, "a stone floats above an empty cell"),
        ({"board": [*EMPTY_ROWS, [1, 1, 0, -1, 0, 0, 0]]}, "the stone counts do not fit alternating moves"),
        ({"board": [*EMPTY_ROWS[1:], [-1, -1, -1, 0, 0, 0, 0], [1, 1, 1, 1, -1, 0, 0]]}, "already has four in a line"),
        ({"board": [*EMPTY_ROWS[1:], [1, 1, 1, 0, 0, 0, 0], [-1] * 4 + [0] * 3]}, "the game is over: four in a line"),
        ({"moves": "1111111"}, "move 7 falls into column 1, which is full"),
        ({"moves": "41424344"}, "move 8 comes after the end of the game"),
        ({"moves": "4142434"}, "the game is over: four in a line"),
        ({"moves": "8"}, "moves: "),
        ({"moves": "1" * 43}, "moves: "),
        ({"moves": DRAWN}, "the board is full"),
        ({}, "not both"),
        ({"moves": "4", "board": [*EMPTY_ROWS, [0, 0, 0, -1, 0, 0, 0]]}, "not both"),
    ],
)
def test_what_is_no_open_game_is_refused(client, given, line):
    assert line in refusal(client, 422, player="small", **given)


@pytest.mark.parametrize(
    ("player", "status", "line"),
    [
        ("nobody", 404, "'nobody' is unknown"),
        ("random:5", 404, "unknown"),
        ("../small", 404, "unknown"),
        ("/etc", 404, "unknown"),
        ("unfinished", 404, "unknown"),
        ("uct:1001", 422, "at most 1000 simulations"),
        ("uct:99999999999", 422, "whole number"),
        ("uct:0", 422, "from 1"),
        ("uct:٣", 422, "whole number"),
        ("uct", 422, "whole number"),
        ("teacher:100", 404, "unknown"),
        ("small@puct:0", 422, "from 1"),
        ("small@puct", 422, "whole number"),
        ("small@puct:1001", 422, "at most 1000 simulations"),
        ("small@sample", 422, "modes are policy, value, puct:N, gumbel:N"),
        ("nobody@puct:5", 404, "unknown"),
        ("x" * 81, 422, "player: "),
    ],
)
def test_a_player_that_cannot_be_asked_is_refused(client, player, status, line):
    assert line in refusal(client, status, player=player, moves="4")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"player": "small", "moves": "4", "extra": 1}', b"\xff", b'{"player": NaN}']
)
def test_anything_else_is_refused_in_one_line(client, body):
    reply = client.post("/api/move", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code in (400, 422)
    assert list(reply.json()) == ["error"]


def test_a_body_over_the_limit_is_refused_with_and_without_its_length(client):
    small = b'{"player": "random", "moves": "4"}'
    head = {"Content-Type": "application/json"}
    assert client.post("/api/move", content=small.ljust(api.BODY_LIMIT), headers=head).status_code == 200
    too_long = small.ljust(api.BODY_LIMIT + 1)
    assert client.post("/api/move", content=too_long, headers=head).status_code == 413
    pieces = (too_long[start : start + 1000] for start in range(0, len(too_long), 1000))
    reply = client.post("/api/move", content=pieces, headers=head)
    assert reply.status_code == 413
    assert reply.json()["error"] == "the body is over 4096 bytes"


def test_another_web_sites_name_is_not_answered(client):
    assert client.get("/api/players", headers={"Host": "evil.example"}).status_code == 400


def test_a_form_of_another_site_cannot_ask(client):
    reply = client.post(
        "/api/move", content=b'{"player": "random", "moves": "4"}', headers={"Content-Type": "text/plain"}
    )
    assert reply.status_code == 422


def test_the_catalogue_lists_models_searches_and_the_solver_with_its_licence(client):
    catalogue = client.get("/api/players").json()
    names = [player["name"] for player in catalogue["players"]]
    assert names[:2] == ["small", "reference/shipped"]
    assert {"uct:N", "mcts-solver:N", "solver", "punisher", "random"} < set(names)
    assert catalogue["max_simulations"] == 1000
    assert "AGPL" in catalogue["notices"][0]


def test_without_the_solver_nobody_is_told_of_it(models, monkeypatch):
    monkeypatch.setattr(opponents.importlib.util, "find_spec", lambda name: None)
    client = TestClient(api.application(Opponents([models], 1000, 1)), base_url=URL)
    catalogue = client.get("/api/players").json()
    assert "solver" not in [player["name"] for player in catalogue["players"]]
    assert catalogue["notices"] == []
    assert refusal(client, 404, player="solver", moves="4") == "the solver is not installed here"


def gather(app, requests: list[dict]) -> list[httpx2.Response]:
    """Requests sent at the same time, in one event loop."""

    async def all_of_them():
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=URL, timeout=60) as client:
            return await asyncio.gather(*(client.post("/api/analysis", json=body) for body in requests))

    return asyncio.run(all_of_them())


def test_what_comes_together_is_answered_in_one_batch_each_with_its_own(models):
    app = api.application(found := Opponents([models], 1000, 1))
    batches = []
    predict = saved.load(models / "small")

    def counting(boards):
        batches.append(len(boards))
        return predict(boards)

    batcher = work.Batcher(lambda: counting, found._network_thread)
    found._batcher = lambda *_: batcher
    games = [f"{a}{b}" for a in range(1, 8) for b in range(1, 8)]
    replies = gather(app, [{"player": "small", "moves": moves} for moves in games])
    expected = predict(np.array([board_of(moves) for moves in games], np.int8))["policy"]
    np.testing.assert_allclose([reply.json()["policy"] for reply in replies], expected, atol=1e-5)
    assert sum(batches) >= 49
    assert len(batches) < 10
    assert all(size.bit_count() == 1 for size in batches)  # few sizes, see work.Batcher


def test_more_than_the_queue_takes_is_told_to_come_again(models):
    app = api.application(found := Opponents([models], 1000, 1))
    release = threading.Event()
    blocked = [{"player": "uct:10", "moves": "4"}] * (opponents.SEARCH_QUEUE + 5)

    async def flood():
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=URL, timeout=60) as client:
            holding = asyncio.create_task(found._searches.run(release.wait))
            await asyncio.sleep(0)
            asked = [asyncio.create_task(client.post("/api/analysis", json=body)) for body in blocked]
            refused = await asyncio.gather(*asked[-6:])
            release.set()
            await holding
            return refused, [await task for task in asked], await client.post("/api/analysis", json=blocked[0])

    refused, everybody, afterwards = asyncio.run(flood())
    assert {reply.status_code for reply in refused} == {503}
    assert refused[0].headers["Retry-After"] == "1"
    assert sorted({reply.status_code for reply in everybody}) == [200, 503]
    assert afterwards.status_code == 200


def test_the_network_queue_has_an_end_too():
    async def flood():
        queue = work.threads(1, 10, "network")
        release = threading.Event()
        batcher = work.Batcher(lambda: lambda boards: release.wait() and {"move": boards[:, 0, 0]}, queue, limit=3)
        board = np.zeros((6, 7), np.int8)
        asked = [asyncio.create_task(batcher.ask(board)) for _ in range(9)]
        await asyncio.sleep(0.05)
        release.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    answers = asyncio.run(flood())
    assert sum(isinstance(answer, work.BusyError) for answer in answers) >= 1
    assert sum(isinstance(answer, dict) for answer in answers) >= 3


def test_a_model_trained_again_is_loaded_again(client, models):
    before = ask(client, player="small", moves="4").json()["policy"]
    pb = models / "small" / "saved_model" / "1" / "saved_model.pb"
    stamp = pb.stat()
    assert ask(client, player="small", moves="4").json()["policy"] == before
    other = small_network()
    other.set_weights([weight * 0.5 for weight in other.get_weights()])
    folder = models / "small" / "saved_model"
    os.rename(folder / "1", models / "small" / "old")
    saved.write(other, folder / "1")
    os.utime(pb, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    after = ask(client, player="small", moves="4").json()["policy"]
    assert np.abs(np.subtract(before, after)).max() > 1e-3


def test_a_damaged_model_is_told_of_and_the_others_play_on(models):
    broken = models / "broken" / "saved_model" / "1"
    broken.mkdir(parents=True)
    (broken / "saved_model.pb").write_bytes(b"no model")
    client = TestClient(api.application(Opponents([models], 1000, 1)), base_url=URL)
    try:
        assert "not a readable SavedModel" in refusal(client, 404, player="broken", moves="4")
        assert ask(client, player="small", moves="4").status_code == 200
    finally:
        (broken / "saved_model.pb").unlink()


def test_only_so_many_networks_are_kept_in_memory(models, monkeypatch):
    monkeypatch.setattr(opponents, "LOADED", 1)
    found = Opponents([models], 1000, 1)
    small, one_pass = models / "small" / "saved_model", words.Word(network="small", mode="policy")
    first = found._batcher(small, one_pass)
    assert found._batcher(small, one_pass) is first
    found._batcher(small, words.Word(network="small", mode="puct", simulations=2))
    assert len(found._loaded) == 1
    assert found._batcher(small, one_pass) is not first


def test_searches_that_must_be_compiled_are_announced_and_networks_answer_meanwhile(models, monkeypatch, capsys):
    monkeypatch.setattr(opponents.cache, "holds", lambda _: False)  # so it is compiled again, out of the cache
    found = Opponents([models], 1000, 1)
    first_move = rules.from_moves("4")

    async def ask_at_once() -> list[str]:
        answered = []

        async def ask(word: str) -> None:
            await found.ask(word, first_move)
            answered.append(word)

        warming = asyncio.create_task(found.warm_up())
        while not found.catalogue().waiting:
            await asyncio.sleep(0.01)
        await asyncio.gather(*(ask(word) for word in ("uct:20", "small@puct:5", "small")), warming)
        return answered

    assert asyncio.run(ask_at_once())[0] == "small"
    assert found.catalogue().waiting == ""
    assert capsys.readouterr().err.splitlines() == [opponents.COMPILING, "The searches are compiled."]
    found.close()


def test_the_solver_comes_back_after_its_process_was_killed(models):
    async def kill_and_ask():
        found = Opponents([models], 1000, 1)
        queue = found._solver
        with pytest.raises(work.BusyError):
            await queue.run(os._exit, 1)
        opinion = await found.ask("solver", rules.from_moves("414243"))
        found.close()
        return opinion

    assert asyncio.run(kill_and_ask()).column == 3


def test_the_page_and_the_description_of_the_api_load_nothing_from_elsewhere(client):
    for path in ("/", "/docs"):
        reply = client.get(path)
        assert reply.status_code == 200
        assert reply.headers["content-security-policy"].startswith("default-src 'self'")
        assert "//" not in reply.text.replace("<!doctype", "")
    assert client.get("/api.py").status_code == 404
    assert client.get("/../api.py").status_code == 404
    assert client.get("/nothing").json() == {"error": "Not Found"}


@pytest.fixture(scope="module")
def described(app):
    async def always_running(scope, receive, send):
        """The app without its start and end, which Schemathesis would run around every request."""
        if scope["type"] == "http":
            return await app(scope, receive, send)
        for _ in range(2):
            await send({"type": f"{(await receive())['type']}.complete"})

    return schemathesis.openapi.from_asgi("/openapi.json", always_running, headers={"Host": "127.0.0.1"})


@pytest.mark.filterwarnings("ignore:Do not use the `random` module")  # Schemathesis does, inside Hypothesis
@pytest.mark.parametrize("path", ["/api/move", "/api/analysis"])
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_fuzzed_request_breaks_the_server_and_replies_are_as_described(described, path, mode):
    checks = [getattr(schemathesis.checks, name) for name in FUZZ_CHECKS]
    seen = set()

    @given(case=described[path]["POST"].as_strategy(generation_mode=mode), player=st.sampled_from(KNOWN))
    @hypothesis.settings(max_examples=25, suppress_health_check=list(HealthCheck))
    def fuzz(case, player):
        if player and isinstance(case.body, dict):
            case.body["player"] = player
        reply = case.call(base_url=URL)
        case.validate_response(reply, checks=checks)
        seen.add(reply.status_code)

    fuzz()
    assert 422 in seen
    assert mode is GenerationMode.NEGATIVE or 200 in seen


FUZZ_CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
KNOWN = [None, "small", "uct:5", "punisher", "random"]
"""Who is asked instead of a made-up name; None keeps that."""


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
            client.request("GET", "/api/players")
            assert client.getresponse().read().startswith(b'{"players"')
            (connection,) = server.server_state.connections
            accepted = connection.transport.get_extra_info("socket")
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    finally:
        server.should_exit = True
        serving.join()


def test_a_taken_port_is_told_in_one_line(models, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert serve.main(["--models", str(models), "--port", str(taken.getsockname()[1])]) == 1
    error = capsys.readouterr().err
    assert "cannot be used" in error
    assert "Traceback" not in error


def test_an_address_that_is_not_this_machines_is_told_in_one_line(models, capsys):
    assert serve.main(["--models", str(models), "--host", "192.0.2.1", "--port", "0"]) == 1
    assert "--host 192.0.2.1 cannot be used" in capsys.readouterr().err


def test_the_page_is_opened_and_other_machines_may_ask_only_where_that_was_said(models, monkeypatch):
    shown, served, said = [], [], []
    monkeypatch.setattr(serve, "say", said.append)
    monkeypatch.setattr(uvicorn.Config, "configure_logging", lambda _: None)
    monkeypatch.setattr(serve.webbrowser, "open", shown.append)
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, sockets: served.append((server.config.app, sockets[0])))
    for flags in ({}, {"open": True, "host": "0.0.0.0"}):
        assert serve.run(serve.ServeConfig(models=models, port=0, **flags)) == "stopped"
    assert [address.rpartition(":")[0] for address in shown] == ["http://127.0.0.1"]
    assert sum("there is no password" in line for line in said) == 1
    for (app, _), status in zip(served, (400, 200), strict=True):
        headers = {"Host": "another.example"}
        assert TestClient(app, base_url=URL).get("/api/players", headers=headers).status_code == status


@pytest.mark.parametrize(
    "flags",
    [["--port", "65536"], ["--workers", "0"], ["--max-simulations", "2000000"], ["--host", "everywhere"]],
)
def test_a_wrong_flag_exits_with_2(flags):
    assert serve.main(flags) == 2


def test_missing_packages_are_told_with_the_line_that_installs_them(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert serve.main([]) == 1
    assert f"serve needs the web packages: {provenance.install_line('serve')}\n" in capsys.readouterr().err


def test_a_folder_that_is_named_must_hold_a_network(tmp_path, capsys):
    assert serve.main(["--models", str(tmp_path / "nope")]) == 1
    assert f"--models {tmp_path / 'nope'}: no such folder" in capsys.readouterr().err
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "best.keras").touch()
    assert serve.main(["--models", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert f"--models {tmp_path}: no NAME/saved_model/1/saved_model.pb in it" in error
    assert error.count("\n") == 1
