"""Games on the page, played in headless Chromium against `python -m distill.serve`: the browser's rules are Python's,
the analysis shows the API's policy, value, visits and scores column by column, a server that is busy, fails or is a
login page gets one clear line, and no other host is asked.
"""

import json

import pytest
from helpers import game_at_random

from distill.common import provenance, read_object
from distill.game import rules
from distill.game.encoding import boards
from tests import pages
from tests.api_helpers import FULL_LEFT


def test_a_whole_game_by_keyboard_alone(page):
    pages.start(page, "", second="small")
    page.keyboard.press("ArrowRight")  # onto the board
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("Column 5, empty")

    def press(number: int) -> None:
        if number % 2:
            page.keyboard.press(str(number))
            return
        page.keyboard.press("Home")
        for _ in range(number - 1):
            page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")

    position = rules.from_moves(pages.play_at_random(page, press, seed=5))
    is_won = rules.is_won(position)
    ending = "You lost" if position.ply % 2 == 0 else f"You won in {position.ply} moves"
    pages.status_says(page, ending if is_won else "Draw")
    assert pages.stones(page) == position.ply
    assert (page.locator(".won-ring").count() >= 4) == is_won
    page.keyboard.press("n")
    pages.status_says(page, "You are Red against small: drop a stone")
    assert pages.moves_of(page) == ""


def test_the_browsers_rules_are_pythons(page):
    games = [game_at_random(seed, seed) for seed in range(60)]
    script = """async (games) => {
      const { replay, legalColumns, boardOf } = await import("./rules.js");
      return games.map((moves) => {
        const position = replay(moves);
        return [[...boardOf(position)], legalColumns(position), position.isOver, position.winner !== null];
      });
    }"""
    for moves, answer in zip(games, page.evaluate(script, games), strict=True):
        position = rules.from_moves(moves)
        board = boards([position.current], [position.mask]).reshape(-1).tolist()
        over, won = rules.is_over(position), rules.is_won(position)
        assert answer == [board, rules.legal_columns(position), over, won], moves


@pytest.mark.parametrize(
    ("moves", "winner", "cells"),
    [
        ("4142434", "Red", {(row, 3) for row in (2, 3, 4, 5)}),
        ("71727364", "Yellow", {(5, column) for column in (0, 1, 2, 3)}),
        ("12233434464", "Red", {(5, 0), (4, 1), (3, 2), (2, 3)}),
        ("76655454424", "Red", {(5, 6), (4, 5), (3, 4), (2, 3)}),
        ("4152631", "", set()),
    ],
)
def test_a_win_is_marked_on_its_stones(page, moves, winner, cells):
    pages.start(page, moves[:-1])
    assert page.locator(".won-ring").count() == 0
    page.keyboard.press(moves[-1])
    pages.status_says(page, f"{winner} wins. Four in a row." if winner else "Yellow’s turn")
    script = "[...document.querySelectorAll('.won-ring')].map((ring) => [ring.cy.baseVal.value, ring.cx.baseVal.value])"
    assert {(round((y - 62) / 96), round((x - 62) / 96)) for y, x in page.evaluate(script)} == cells
    if winner:
        pages.column(page, 7).click(force=True)
        pages.status_says(page, "The game is over")
        assert pages.moves_of(page) == moves


def test_the_networks_policy_and_value_are_shown(page, server):
    pages.start(page, FULL_LEFT)
    assert page.is_hidden("#strips"), "in a game nobody is told what to play"
    page.click("#tab-analysis")
    page.locator("#network-on").check()
    reply = pages.asked(page, server, page.input_value("#network-who"), FULL_LEFT)
    percents = [round(100 * share) for share in reply["policy"]]
    shown = pages.cells_of(page, "network")
    assert [0 if text == "<1" else int(text) for text in shown] == percents
    sign = "+" if reply["value"] > 0 else "−"
    assert f"value {sign}{abs(reply['value']):.2f} for Yellow" in page.inner_text("#network-strip")
    best = page.locator("#network-strip .best").get_attribute("aria-label")
    assert best.startswith(f"column {reply['move'] + 1}:")


def test_the_searchs_and_the_solvers_opinions_are_shown(page, server):
    pages.start(page, "41424", first="person")
    page.click("#tab-analysis")
    assert page.is_checked("#solver-on")
    page.locator("#search-on").check()
    page.select_option("#search-who", search := "reference/pillar@puct:200")
    scores = pages.asked(page, server, "solver", "41424")["scores"]
    assert pages.cells_of(page, "solver") == [f"+{s}" if s > 0 else f"−{-s}" if s else "0" for s in scores]
    visits = [round(100 * share) for share in pages.asked(page, server, search, "41424")["policy"]]
    assert [0 if text == "<1" else int(text) for text in pages.cells_of(page, "search")] == visits
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("o")
    assert not page.locator("#solver-strip").is_visible()


def test_players_switch_sides_and_colours_are_watched_and_kept_for_the_next_visit(page, server):
    pages.start(page, "", first="punisher", second="small")
    pages.status_says(page, "Punisher (Red) against small (Yellow)")
    page.get_by_role("button", name="Watch").click()
    pages.wait_for(page, "location.hash.length >= 3")
    page.get_by_role("button", name="Pause").click()
    stopped = pages.moves_of(page)
    page.wait_for_timeout(1000)
    assert pages.moves_of(page) == stopped
    page.get_by_role("button", name="Resume").click()
    pages.wait_for(page, "length => location.hash.slice(1).length > length", len(stopped))
    page.get_by_role("button", name="Switch sides").click()
    page.get_by_role("button", name="Swap colours").click()
    pages.visit(page, f"{server}?again")
    assert [page.input_value(f"#player-{side}") for side in (0, 1)] == ["small", "punisher"]
    assert page.inner_text("#seat-name-0") == "Yellow"


def test_take_back_returns_to_the_persons_turn(page):
    pages.start(page, "", second="small")
    page.keyboard.press("4")
    pages.wait_for(page, "location.hash.length === 3")
    pages.wait_for_turn(page)
    page.get_by_role("button", name="Take back").click()
    assert pages.moves_of(page) == ""
    pages.status_says(page, "Your turn (Red)")
    pages.start(page, "44", first="small")  # a person moves second, and the network answers at once
    pages.wait_for(page, "location.hash.length === 4")
    page.keyboard.press("u")
    assert pages.moves_of(page) == "4"
    page.keyboard.press("u")  # no person has had a turn before: the network waits, or it would play the same again
    pages.status_says(page, "Paused: small is to move")
    page.get_by_role("button", name="Resume").click()
    pages.wait_for(page, "location.hash.length === 2")


def test_a_busy_server_is_asked_again_and_a_player_who_fails_is_told_of_and_can_be_asked_again(browser, server):
    with pages.open_page(browser, server, ignore=("503", "422")) as page:
        busy = {"status": 503, "json": {"error": "too many"}, "headers": {"Retry-After": "4"}}
        page.route("**/api/v1/analysis", lambda route: route.fulfill(**busy), times=1)
        pages.start(page, "", second="small")
        page.keyboard.press("4")
        pages.status_says(page, "The server is busy; retrying…")
        pages.wait_for(page, "location.hash.length === 3")
        pages.status_says(page, "Your turn")
        page.route("**/api/v1/analysis", lambda route: route.fulfill(status=422, json={"error": "no, thank you"}))
        pages.start(page, "", second="small")
        page.keyboard.press("4")
        pages.status_says(page, "no, thank you")
        page.unroute("**/api/v1/analysis")
        page.get_by_role("button", name="Resume").click()
        pages.wait_for(page, "location.hash.length === 3")


WITHOUT_EFFECTS = """() => {
  delete window.AudioContext;
  const refuse = () => { throw new DOMException("The operation is insecure.", "SecurityError"); };
  Element.prototype.animate = Storage.prototype.setItem = refuse;
  History.prototype.replaceState = History.prototype.pushState = refuse;
}"""


def test_a_browser_without_sound_history_animations_or_storage_plays_on(browser, server):
    with pages.open_page(browser, server, reduced_motion="no-preference") as page:
        page.evaluate(WITHOUT_EFFECTS)
        page.get_by_role("checkbox", name="Sound").check()
        page.select_option("#player-1", "small")
        page.keyboard.press("4")
        pages.wait_for_stones(page, 2)
        page.keyboard.press("4")
        pages.wait_for_stones(page, 4)
        page.click("#new")
        pages.wait_for_stones(page, 0)
        page.keyboard.press("1")
        pages.wait_for_stones(page, 2)


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        ({"body": "<!doctype html><title>Log in</title>", "content_type": "text/html"}, "a login page or a proxy"),
        ({"status": 502, "body": "<html>Bad Gateway"}, "The server replied 502."),
        ({"status": 503, "json": {"error": "closed today"}, "headers": {"Retry-After": "3600"}}, "closed today"),
    ],
)
def test_a_reply_that_is_not_the_servers_or_asks_to_wait_an_hour_is_told_in_one_line(browser, server, reply, line):
    with pages.open_page(browser, server, ignore=("502", "503")) as page:
        page.route("**/api/v1/analysis", lambda route: route.fulfill(**reply))
        pages.start(page, "", second="small")
        page.keyboard.press("4")
        pages.status_says(page, line)


def test_networks_are_offered_with_their_sizes_and_play_with_a_search(page):
    words = page.locator("#player-1 optgroup[label='Networks with search'] option").evaluate_all(
        "all => all.map(o => o.value)"
    )
    valued = ("small", "reference/shipped", "reference/pillar", "reference/pillar-large")  # others have no value head
    assert words == [f"{name}@puct:{number}" for name in valued for number in (16, 50, 200, 800)]
    for folder in provenance.shipped("models/reference").glob("*/saved_model"):
        facts = read_object(folder / "export.json")
        option = page.locator(f"#player-1 option[value='reference/{facts['network']}']")
        assert option.get_attribute("title") == f"{facts['arch']}, {facts['parameters']:,} parameters"
    pages.start(page, "414243", first="reference/pillar@puct:50")
    pages.status_says(page, "You lost")
    assert pages.moves_of(page) == "4142434"


def test_the_description_of_the_api_lists_and_tries_it_and_nothing_is_asked_of_any_other_host(page, server):
    hosts = set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    for path in ("", "docs.html"):
        pages.visit(page, f"{server}{path}")
    text = page.inner_text("body")
    for word in ("/api/v1/players", "/api/v1/analysis", "the server is busy", "Analysis"):
        assert word in text
    page.locator("section", has_text="/api/v1/analysis").get_by_role("button").click()
    page.wait_for_selector("pre:not([hidden])")
    status, _, answer = page.inner_text("pre:not([hidden])").partition(" ")
    assert status == "200"
    assert json.loads(answer)["move"] in range(7)
    assert hosts == {server.split("/")[2]}
