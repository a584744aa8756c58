"""The JSON API: its answers are those of the players, what is no request is refused in one line with status 4xx, and
fuzzed requests over the schema get no 5xx and no reply that the schema does not describe.
"""

import importlib.util

import hypothesis
import numpy as np
import pytest
import schemathesis
from helpers import DRAWN
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from schemathesis import GenerationMode
from starlette.testclient import TestClient

import distill
from distill.networks import predict
from distill.web import api
from distill.web.opponents import Opponents
from tests.api_helpers import FULL_LEFT, URL, ask, board_of, refusal


@pytest.mark.parametrize("player", ["small", "uct:200", "punisher", "solver"])
def test_moves_and_a_board_get_the_same_answer(client, player):
    by_moves = ask(client, player=player, moves="44532", seed=3).json()
    by_board = ask(client, player=player, board=board_of("44532"), seed=3).json()
    assert by_moves == by_board
    short, whole = (ask(client, player=name, moves="44").json() for name in ("shipped", "reference/shipped"))
    assert short | {"player": whole["player"]} == whole, "the name of a network that ships may be short"


def test_a_network_answers_what_its_saved_model_says(client, models):
    reply = ask(client, player="small", moves=FULL_LEFT).json()
    outputs = predict.load(models / "small", fast=False)(np.array([board_of(FULL_LEFT)], np.int8))
    expected = {name: array[0] for name, array in outputs.items()}
    np.testing.assert_allclose(reply["policy"], expected["policy"], atol=1e-5)
    assert reply["policy"][0] == 0
    assert reply["move"] == expected["move"]
    assert reply["value"] == pytest.approx(float(expected["value"]), abs=1e-5)
    assert reply["scores"] is None


@pytest.mark.parametrize("player", ["small", "small@sample", "small@puct:20", "uct:50", "punisher", "solver"])
def test_a_game_is_answered_in_one_request_as_each_of_its_positions_alone(client, player):
    for moves, number in (("", 1), ("445532", 7), ("4142434", 7)):
        reply = ask(client, "/api/v1/game", player=player, moves=moves, seed=3)
        assert reply.status_code == 200
        analyses = reply.json()["analyses"]
        assert len(analyses) == number
        for ply, analysis in enumerate(analyses):
            alone = ask(client, player=player, moves=moves[:ply], seed=3).json()
            for field, value in alone.items():  # the runtime rounds differently in a batch
                assert analysis[field] == (value if field in ("player", "move", "scores") else pytest.approx(value))
    for moves, line in (("1111111", "column 1, which is full"), ("41424344", "after the end of the game")):
        assert line in refusal(client, 422, path="/api/v1/game", player=player, moves=moves)


def test_the_solver_answers_with_its_scores(client):
    solved = ask(client, player="solver", moves="414243").json()
    assert (solved["move"], solved["policy"], solved["value"], solved["scores"][3]) == (3, None, 1, 22 - 4)


EMPTY_ROWS = [[0] * 7 for _ in range(5)]


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"board": [[0, 0, 0, -1, 0, 0, 0], *EMPTY_ROWS]}, "a stone floats above an empty cell"),
        ({"board": [*EMPTY_ROWS, [1, 1, 0, -1, 0, 0, 0]]}, "the stone counts do not fit alternating moves"),
        ({"board": [*EMPTY_ROWS[1:], [-1, -1, -1, 0, 0, 0, 0], [1, 1, 1, 1, -1, 0, 0]]}, "already has four in a line"),
        ({"board": [*EMPTY_ROWS[1:], [1, 1, 1, 0, 0, 0, 0], [-1] * 4 + [0] * 3]}, "the game is over: four in a line"),
        ({"moves": "4142434"}, "the game is over: four in a line"),
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
        ("../small", 404, "unknown"),
        ("unfinished", 404, "unknown"),
        ("uct:1001", 422, "simulations from 1 to 1,000"),
        ("uct:٣", 422, "whole number"),
        ("small@puct:1001", 422, "simulations from 1 to 1,000"),
        ("small@value", 422, "modes are policy, sample, puct:N, gumbel:N"),
        ("x" * 81, 422, "player: "),
    ],
)
def test_a_player_that_cannot_be_asked_is_refused(client, player, status, line):
    assert line in refusal(client, status, player=player, moves="4")


def test_anything_else_or_from_another_site_is_refused_in_one_line(client):
    for body in (
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"player": "small", "moves": "4", "extra": 1}',
        b"\xff",
        b'{"player": NaN}',
    ):
        reply = client.post("/api/v1/analysis", content=body, headers={"Content-Type": "application/json"})
        assert reply.status_code in (400, 422)
        assert list(reply.json()) == ["error"]
    small = b'{"player": "random", "moves": "4"}'
    head = {"Content-Type": "application/json"}
    assert client.post("/api/v1/analysis", content=small, headers=head).status_code == 200
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):  # which another site's page may send
        form = client.post("/api/v1/analysis", content=small, headers={"Content-Type": kind})
        assert (form.status_code, [*form.json()]) == (422, ["error"])


def test_the_server_says_that_it_is_well_and_head_is_answered_as_get_without_the_body(client):
    assert client.get("/api/v1/health").json() == {"status": "ok", "version": distill.__version__}
    for path in ("/api/v1/health", "/api/v1/players", "/", "/docs.html", "/nothing"):
        whole, head = client.get(path), client.head(path)
        assert (head.status_code, head.content) == (whole.status_code, b"")
        assert head.headers["content-length"] == whole.headers["content-length"]
        assert head.headers["cross-origin-resource-policy"] == "same-origin"
        assert head.headers["cross-origin-opener-policy"] == "same-origin"


def test_the_catalogue_lists_models_searches_and_the_solver_with_its_licence_where_it_is_installed(models, monkeypatch):
    for installed in (True, False):
        client = TestClient(api.application(Opponents([models], 1000, 1)), base_url=URL)
        catalogue = client.get("/api/v1/players").json()
        names = [player["name"] for player in catalogue["players"]]
        assert names[:2] == ["small", "reference/shipped"]
        assert {"uct:N", "mcts-solver:N", "punisher", "random"} < set(names)
        assert ("solver" in names, "AGPL" in "".join(catalogue["notices"])) == (installed, installed)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert catalogue["max_simulations"] == 1000
    assert refusal(client, 404, player="solver", moves="4") == "the solver is not installed here"


def test_the_page_and_the_description_of_the_api_load_nothing_from_elsewhere(client):
    for path in ("/", "/docs.html"):
        reply = client.get(path)
        assert reply.status_code == 200
        assert reply.headers["content-security-policy"].startswith("default-src 'self'")
        assert "frame-ancestors 'none'" in reply.headers["content-security-policy"], "no other site shows it in a frame"
        assert "//" not in reply.text.replace(URL, "")
    forged = client.get("/", headers={"Host": '"><b>@127.0.0.1'}).text
    assert "preview.png" in forged
    assert "<b>" not in forged
    assert client.get("/api.py").status_code == 404
    assert client.get("/%2e%2e/api.py").status_code == 404
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
@pytest.mark.parametrize("path", ["/api/v1/analysis", "/api/v1/game"])
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
    # A generated game is nearly always a possible one.
    assert 422 in seen or (path.endswith("game") and mode is GenerationMode.POSITIVE)
    assert mode is GenerationMode.NEGATIVE or 200 in seen


FUZZ_CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
KNOWN = [None, "small", "small@puct:3", "small@sample", "club", "uct:5", "punisher", "random"]
"""Who is asked instead of a made-up name; None keeps that."""
