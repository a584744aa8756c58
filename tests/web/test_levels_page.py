"""Named levels on the page and in the API: a first visit offers them with their Elo, and the API and the rule in
JavaScript have the probabilities of `levels.probabilities`.
"""

import csv
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from helpers import bits, unfinished_games
from starlette.testclient import TestClient

from distill.common import provenance
from distill.game import rules
from distill.players import levels
from distill.players.levels import LEVELS
from distill.players.names import make
from distill.web import api, opponents
from distill.web.opponents import Opponents
from tests import pages
from tests.api_helpers import URL

OFFERED = ["person", *LEVELS]
SHIPPED = provenance.shipped("models/reference").parent
MORE = False


OPTIONS = "(side) => [...document.getElementById(`player-${side}`).options].map(({ value }) => value)"


@pytest.fixture(scope="module")
def client():
    return TestClient(api.application(Opponents([SHIPPED], 1000, 1)), base_url=URL)


def test_a_first_visit_offers_the_levels_and_a_friend_with_elo_and_a_sentence(page):
    assert page.get_by_role("radio", name="Casual").is_checked()
    assert page.inner_text("#opponent-note") == "Usually blocks, but falls into traps."
    rows = page.locator(".opponent")
    assert rows.count() == len(LEVELS) + 1
    notes = [*(card.note for card in opponents.CARDS if card.kind == "level"), "Two people share this device"]
    with Path("docs/benchmark.csv").open() as table:
        elo = {row["player"]: f"Elo {float(row['elo']):.0f}" for row in csv.DictReader(table)}
    for place, (name, note) in enumerate(zip([*LEVELS, "a friend"], notes, strict=True)):
        row = rows.nth(place)
        assert row.inner_text() == name.capitalize()
        assert row.get_attribute("title") == ": ".join(filter(None, [elo.get(name), note]))
        row.click()
        assert page.inner_text("#opponent-note") == f"{note}."
    assert not page.is_visible("#player-1")


def test_the_switch_shows_everybody_and_is_remembered(page):
    page.focus("#more-players")
    page.keyboard.press("Space")
    assert {"reference/pillar", "uct:1000", "solver", "random", *OFFERED} < set(page.evaluate(OPTIONS, 1))
    pages.visit(page)
    assert page.is_checked("#more-players")
    assert "uct:1000" in page.evaluate(OPTIONS, 0)


@pytest.mark.parametrize("name", LEVELS)
def test_the_api_answers_with_a_levels_probabilities_and_a_seed_repeats_its_move(client, name):
    player = make(name, fast=True)
    for moves in ("", "4453", "443", "112233", "1212", "454545"):
        current, mask = bits(rules.from_moves(moves))
        reply = client.post("/api/v1/analysis", json={"player": name, "moves": moves, "seed": 9}).json()
        expected = player.choose(current, mask, np.zeros(1, np.uint64)).policy
        np.testing.assert_allclose(reply["policy"], expected[0], atol=1e-6)
        assert (reply["value"], reply["scores"]) == (None, None)
        again = client.post("/api/v1/analysis", json={"player": name, "moves": moves, "seed": 9}).json()
        assert again["move"] == reply["move"]
    cards = client.get("/api/v1/players").json()["players"]
    assert [card["name"] for card in cards[: len(LEVELS)]] == list(LEVELS)


def test_without_the_solver_perfect_is_a_search_where_one_so_long_may_be_asked(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    cards = {card.name: card.note for card in Opponents([SHIPPED], 1000, 1).catalogue().players}
    assert "search of 800 simulations" in cards["perfect"]
    assert "perfect" not in {card.name for card in Opponents([SHIPPED], 100, 1).catalogue().players}


def test_the_rule_in_javascript_is_pythons(page):
    games = unfinished_games(300)
    current, mask = bits(*map(rules.from_moves, games))
    policy = make("pillar", fast=True).choose(current, mask, mask).policy
    script = """async ([games, policies]) => {
      const { LEVELS, cards, probabilities } = await import("./levels.js");
      const { replay } = await import("./rules.js");
      const shares = Object.entries(LEVELS).map(([name, level]) =>
        [name, games.map((moves, index) => probabilities(level, policies[index], replay(moves)))]);
      return { levels: LEVELS, cards, shares: Object.fromEntries(shares) };
    }"""
    answer = page.evaluate(script, [games, policy.tolist()])
    assert list(answer["levels"]) == list(LEVELS)
    notes = {card.name: card.note for card in opponents.CARDS if card.kind == "level"}
    notes["perfect"] = "The network with a search of 800 simulations"
    assert {card["name"]: card["note"] for card in answer["cards"]} == notes
    for name, numbers in answer["levels"].items():
        level = levels.WITHOUT_SOLVER if name == "perfect" else levels.LEVELS[name]
        assert f"{levels.NETWORK}{numbers.pop('mode')}" == level.player
        pythons = (level.temperature, level.blindness, level.trap_blindness, level.block_straight, level.block_diagonal)
        assert tuple(numbers.values()) == pythons
        expected = levels.probabilities(level, policy, current, mask)
        np.testing.assert_allclose(answer["shares"][name], expected, atol=1e-6)
    assert levels.has_trap(current, mask).mean() == pytest.approx(0.5, abs=0.4), "boards of both kinds"
