"""The tab "Play" as a person meets it, in headless Chromium against `python -m distill.serve`: how a game begins and
ends, and what the page says without the players or one of its files.
"""

import re

import pytest

from tests import pages

MORE = False
DRAW = "656173566152215676422337377473141445425321"


def press(page, columns: str) -> None:
    """Play columns in the person's turns."""
    for column in columns:
        pages.wait_for_turn(page)
        pages.column(page, int(column)).click()


def test_an_opponent_and_a_colour_are_chosen_and_an_engine_that_is_first_waits_for_the_start(page):
    page.get_by_role("radio", name="Beginner").check()
    page.get_by_role("radio", name="Yellow, second").check()
    pages.status_says(page, "Start the game: Beginner moves first")
    pages.column(page, 4).click(force=True)
    assert pages.stones(page) == 0
    page.get_by_role("button", name="Start game").click()
    pages.status_says(page, "Beginner played column", "Your turn (Yellow)")
    assert page.inner_text("#seats").split("\n") == ["Red", "Beginner · Elo 383", "Yellow", "You"]


def test_a_won_game_ends_with_the_score_a_rematch_and_a_review(page):
    pages.reply_with(page, 1, 2, 3)
    press(page, "4444")
    pages.status_says(page, "You won in 7 moves. Four in a row.")
    assert page.inner_text("#end-title") == "You won in 7 moves"
    assert page.inner_text("#end-score") == "Your score against Casual: 1 won, 0 drawn, 0 lost."
    page.get_by_role("button", name="Take back").click()
    press(page, "4")
    assert "1 won, 0 drawn" in page.inner_text("#end-score"), "a game counts once"
    for name in ("Take back", "Resign", "Take back"):
        page.get_by_role("button", name=name).click()
    assert "1 won, 0 drawn" in page.inner_text("#players-note"), "the resignation did not count"
    press(page, "4")
    page.locator("#end").get_by_role("button", name="Review").click()
    assert page.get_by_role("tab", name=re.compile("Review|Analysis")).get_attribute("aria-selected") == "true"
    assert pages.stones(page) == 7
    page.get_by_role("tab", name="Play").click()
    pages.reply_with(page, 4)
    page.get_by_role("button", name="Rematch").click()
    pages.status_says(page, "Casual played column 4. Your turn (Yellow)")
    pages.visit(page)
    assert "Your score: 1 won, 0 drawn, 0 lost." in page.inner_text("#players-note")


def test_a_lost_game_has_one_line_of_story_and_results_lead_to_the_next_level_and_are_counted(page):
    pages.status_says(page, "You are Red against Casual: drop a stone")
    pages.reply_with(page, 4, 4, 4, 4)
    press(page, "1223")
    pages.status_says(page, "You lost. Casual has four in a row.")
    assert page.inner_text("#end-title") == "You lost"
    assert "0 won, 0 drawn, 1 lost" in page.inner_text("#end-score")
    assert page.get_attribute("#end", "data-kind") == "loss"
    assert page.locator(".sweep").count() == 1
    pages.wait_for(page, "!document.getElementById('end-story').hidden")
    assert re.match(r"(You could have won on|The game turned on) move \d\. See it", page.inner_text("#end-story"))
    number = int(re.search(r"\d", page.inner_text("#end-story"))[0])
    page.get_by_role("button", name="See it").click()
    pages.wait_for(page, "!document.getElementById('analysis-result').hidden")
    assert pages.stones(page) == number - 1
    assert "Your accuracy" in page.inner_text("#analysis-result")
    page.click("#tab-play")
    pages.reply_with(page, 1, 2, 3)
    page.get_by_role("button", name="Play Beginner").click()
    press(page, "4444")
    pages.status_says(page, "You won in 7 moves. Four in a row.")
    assert page.get_attribute("#end", "data-kind") == "win"
    page.get_by_role("button", name="Play Casual").click()
    assert page.inner_text("#seats").split("\n")[3].startswith("Casual")
    pages.reply_with(page, *map(int, DRAW[1::2]))
    press(page, DRAW[::2])
    pages.status_says(page, "Draw. The board is full.")
    assert "0 won, 1 drawn, 1 lost" in page.inner_text("#end-score")


def test_a_resignation_counts_and_can_be_taken_back(page):
    pages.reply_with(page, 1)
    press(page, "4")
    pages.wait_for_turn(page)
    page.get_by_role("button", name="Resign").click()
    pages.status_says(page, "You lost. You resigned.")
    assert "0 won, 0 drawn, 1 lost" in page.inner_text("#end-score")
    pages.column(page, 4).click(force=True)
    assert pages.stones(page) == 2
    page.get_by_role("button", name="Take back").click()
    pages.status_says(page, "Your turn (Red)")
    assert not page.is_visible("#players-note") or "lost" not in page.inner_text("#players-note")
    scores = page.evaluate("localStorage['distill-scores']")
    page.fill("#game-text", "4444")
    page.press("#game-text", "Enter")
    for _ in range(2):
        page.get_by_role("button", name="Resign").click()
        pages.status_says(page, "You lost. You resigned.")
        assert page.evaluate("localStorage['distill-scores']") == scores, "a loaded game does not count"
        page.get_by_role("button", name="Take back").click()


def test_a_hint_marks_a_best_column(page, server):
    pages.reply_with(page, 1, 2, 1)
    press(page, "44")
    pages.wait_for_turn(page)
    page.get_by_role("button", name="Hint").click()
    pages.status_says(page, "Hint: column ")
    scores = pages.asked(page, server, "solver", "4142")["scores"]
    hinted = page.locator(".columns .hinted").get_attribute("aria-label")
    assert hinted.startswith(page.inner_text("#status")[6:-1].capitalize())
    assert scores[int(hinted[7]) - 1] == max(scores)
    press(page, "4")
    assert page.locator(".columns .hinted").count() == 0


@pytest.mark.parametrize("what", ["Take back", "New game", "p"])
def test_a_move_that_is_no_longer_wanted_leaves_nothing_thinking(page, what):
    page.route("**/api/v1/analysis", lambda route: None)  # an engine that never answers
    press(page, "4")
    pages.status_says(page, "Casual is thinking…")
    assert page.get_attribute("#board", "data-state") == "thinking"
    pages.column(page, 4).click(force=True)
    pages.status_says(page, "Wait for Casual’s move.")
    if len(what) == 1:
        page.keyboard.press(what)
        pages.status_says(page, "Paused: Casual is to move")
    else:
        page.get_by_role("button", name=what).click()
        pages.status_says(page, "Your turn (Red)" if what == "Take back" else "You are Red against Casual")
    assert page.get_attribute("#board", "data-state") == "open"


def test_without_the_list_of_players_two_people_play_and_the_page_says_so(browser, server):
    with pages.open_page(browser, server, more=False, ignore=("500", "ERR_FAILED")) as page:
        page.route("**/players", lambda route: route.fulfill(status=500, json={"error": "out of order"}))
        pages.visit(page)
        pages.status_says(page, "The players cannot be loaded: out of order")
        pages.start(page, "44")
        assert pages.stones(page) == 2
        page.unroute("**/players")
        page.route("**/server.js", lambda route: route.abort())
        pages.visit(page)
        pages.status_says(page, "The players cannot be loaded")


@pytest.mark.parametrize("file", ["main.js", "puzzles.js", "rules.js"])
def test_without_one_of_its_files_the_page_says_so(browser, server, file):
    context = browser.new_context()
    page = context.new_page()
    page.route(f"**/{file}", lambda route: route.fulfill(status=404))
    page.goto(server)
    page.get_by_role("alert").wait_for()
    assert "could not be loaded" in page.inner_text("main")
    context.close()
