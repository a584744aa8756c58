"""What the network sees, in headless Chromium: stones show its policy and a bar its value, a search checks it in steps
to the exact answer, and `#idea` is a tour of three positions.
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


def test_stones_are_the_policy_and_the_bar_is_the_value_in_words_but_not_of_a_puzzle(page, server):
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
    page.keyboard.press("w")
    look(page)
    page.click("#tab-puzzles")
    assert page.is_hidden("#sight")
    assert page.is_hidden("#sight-button")
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


def test_the_positions_of_the_tour_show_what_they_promise(page, server):
    """Their scores are the solver's: `test_page`."""
    for kind, moves, scores in (position.values() for position in TOUR):
        best = scores.index(max(score for score in scores if score is not None))
        glance, short, long = (
            pages.asked(page, server, f"{NETWORK}{mode}", moves)["move"] for mode in ("", "@puct:50", "@puct:800")
        )
        assert long == best, kind
        promised = {
            "right": glance == best,
            "wrong": best not in (glance, short),
            "surprising": glance == best in (0, 6),
        }
        assert promised[kind], kind


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
