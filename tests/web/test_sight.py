"""What the network sees, and the tour of three positions. Properties:

- the stones above the columns are the network's policy, the bar its value in words; a puzzle is not given away;
- on every phone it opens in a game and closes again;
- a search checks it in steps, stones and bar move, and the exact answer comes last; another position ends it;
- `#idea` is a tour: right at a glance; wrong, and the search finds it; right against intuition.
"""

import json

import pytest

from distill.common import provenance
from tests import pages

MORE = False
NETWORK = "reference/pillar"
POSITION = "4453"
TOUR = json.loads((provenance.checkout() / "distill/web/page/tour.json").read_text())["positions"]
SHARES = "[...document.querySelectorAll('.ghost-stone')].map((stone) => Number(stone.dataset.share))"
STEP = "name => document.querySelector('#sight-steps [aria-current]')?.textContent === name"
BAR = "parseFloat(document.getElementById('sight-bar').style.getPropertyValue('--share'))"


def check(page, name: str = "exact") -> None:
    """Let a search check the position, until this step."""
    page.click("#sight-check")
    pages.wait_for(page, STEP, name)


def look(page) -> None:
    """Wait until the network has answered."""
    pages.wait_for(page, "document.getElementById('sight-line').textContent.startsWith('At a glance')")


def test_stones_are_the_policy_and_the_bar_is_the_value_in_words(page, server):
    page.evaluate(f"location.hash = '{POSITION}'")
    pages.wait_for_stones(page, 4)
    assert page.is_hidden("#sight")
    page.get_by_role("button", name="What the network sees").click()
    look(page)
    reply = pages.asked(page, server, NETWORK, POSITION)
    assert page.evaluate(SHARES) == pytest.approx(reply["policy"], abs=1e-3)
    assert page.evaluate(BAR) == pytest.approx(50 + 50 * reply["value"], abs=0.1)
    assert f"column {reply['move'] + 1}" in page.inner_text("#sight-line")
    words = page.evaluate("async (value) => (await import('./sight.js')).oddsInWords(value, 'red')", reply["value"])
    assert page.inner_text("#sight-words") == words
    page.keyboard.press("w")
    assert page.is_hidden("#sight")
    assert page.locator("#board.has-sight").count() == 0


def test_a_search_checks_it_in_steps_until_the_exact_answer(page, server):
    wrong = TOUR[1]["moves"]
    page.evaluate(f"location.hash = '{wrong}'")
    pages.wait_for_stones(page, len(wrong))
    page.click("#sight-button")
    look(page)
    seen = {"glance": page.evaluate(SHARES)}
    page.clock.install()
    page.clock.pause_at("2100-01-01")  # a step stays for some time
    page.click("#sight-check")
    for step in ("1", "50", "200", "800"):
        pages.wait_for(page, STEP, step)
        seen[step] = page.evaluate(SHARES)
        expected = pages.asked(page, server, f"{NETWORK}@puct:{step}", wrong)["policy"]
        assert seen[step] == pytest.approx(expected, abs=1e-3), step
        page.clock.run_for(1000)
    assert seen["800"] != pytest.approx(seen["glance"], abs=0.1), "the stones move"
    pages.wait_for(page, STEP, "exact")
    assert page.inner_text("#sight-words").startswith("Yellow wins in ")
    assert "was wrong; the search saw it" in page.inner_text("#sight-line")
    page.clock.resume()
    assert pages.complaints(page) == []
    page.click("#sight-check")
    page.get_by_role("button", name="One move back").click()
    look(page)
    assert page.is_hidden("#sight-steps"), "another position ends the check"


@pytest.mark.parametrize("size", [(390, 844), (844, 390), (320, 568)], ids=str)
def test_on_a_phone_it_opens_in_a_game_and_closes(browser, server, size):
    with pages.open_page(browser, server, more=MORE, **pages.phone(*size)) as page:
        page.click("#start-game")
        page.get_by_role("button", name="What the network sees").click()
        look(page)
        page.get_by_role("button", name="Close").click()
        assert page.is_hidden("#sight")
        assert page.locator("#board.has-sight").count() == 0
        assert page.evaluate("document.activeElement.id") == "sight-button"


def test_a_puzzle_is_not_given_away(page):
    page.click("#sight-button")
    look(page)
    page.click("#tab-puzzles")
    assert page.is_hidden("#sight")
    assert page.is_hidden("#sight-button")
    assert page.locator("#board.has-sight").count() == 0


@pytest.mark.parametrize("place", range(3))
def test_a_position_of_the_tour_shows_what_it_promises(page, server, place):
    kind, moves, scores = TOUR[place].values()
    assert pages.asked(page, server, "solver", moves)["scores"] == scores
    best = scores.index(max(score for score in scores if score is not None))
    glance, short, long = (
        pages.asked(page, server, f"{NETWORK}{mode}", moves)["move"] for mode in ("", "@puct:50", "@puct:800")
    )
    assert long == best
    assert {"right": glance == best, "wrong": best not in (glance, short), "surprising": glance == best in (0, 6)}[kind]


def test_the_idea_is_a_tour_of_three_positions(page, server):
    page.get_by_role("link", name="See how, in three positions").click()
    for place, position in enumerate(TOUR):
        pages.wait_for_stones(page, len(position["moves"]))
        look(page)
        assert page.inner_text("#tour-title").startswith(f"{place + 1} of 3")
        assert page.evaluate("location.hash") == "#idea"
        if place == 2:
            assert pages.complaints(page) == []
            pages.visit(page)
            look(page)
            page.click("#tour-next")
            page.click("#tour-next")
        page.click("#tour-next")
    assert page.get_by_role("tab", name="Play").get_attribute("aria-selected") == "true"
    assert pages.stones(page) == 0
    assert page.is_hidden("#sight"), "the tour turns it on for itself only"
