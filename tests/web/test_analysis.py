"""The tab "Analysis" in headless Chromium against `python -m distill.serve`: marks are those of a plain computation, a
mistake leads to a better line and can be retried, and links leave the person's game as it was.
"""

import re

import pytest
from review_helpers import accuracy, mark, marks, shipped_moves, with_blunder

from distill.game import rules
from distill.game.encoding import FULL_COLUMN
from tests import pages
from tests.pages import stones

pytest.importorskip("bitbully", reason="the solver is an optional extra")


def reviewed(page, game: str) -> None:
    """Open the link of a game and have it analysed."""
    page.evaluate("game => (location.hash = game)", game)
    pages.wait_for_stones(page, len(game))
    page.get_by_role("button", name="Analyse game").click()
    page.wait_for_selector("#analysis-result:not([hidden])")


def grades(page) -> list[str]:
    return page.evaluate("[...document.querySelectorAll('#moves button')].map((chip) => chip.dataset.grade)")


def errors_of(expected: list[str]) -> list[int]:
    """Numbers of the moves that are errors."""
    return [number for number, mark in enumerate(expected, 1) if mark in ("inaccuracy", "mistake", "blunder")]


def check_page(page, expected: list[str]) -> None:
    """Accuracy, marks in the list of moves, signs on the graph and the list of errors follow from the marks."""
    shown = [page.inner_text(f"#analysis-accuracy-{side}") for side in (0, 1)]
    assert shown == [f"{accuracy(expected[side::2])} %" for side in (0, 1)]
    words = {"best": "best move", "good": "", "forced": ""}
    assert grades(page) == [words.get(mark, mark) for mark in expected]
    signs = page.evaluate(
        "[...document.querySelectorAll('#analysis-graph .sign')].map((sign) => [+sign.dataset.ply, sign.dataset.mark])"
    )
    signed = {"only move", "inaccuracy", "mistake", "blunder"}
    assert signs == [[ply, mark] for ply, mark in enumerate(expected) if mark in signed]
    listed = page.locator(".errors button").all_text_contents()
    slips = [number for number in errors_of(expected) if expected[number - 1] == "inaccuracy"]
    turning_points = [number for number in errors_of(expected) if number not in slips]
    assert [int(text.strip().split(".")[0]) for text in listed] == turning_points + slips
    assert page.locator("#analysis-slips button").count() == len(slips)
    assert page.inner_text("#analysis-note") == "Checked by the perfect solver"


ESTIMATES = {
    # share of the visits, value before the move, value after it for the same side
    (0.6, 0.9, -0.9): "best",
    (0.25, 0.9, -0.9): "good",
    (0.1, 0.9, 0.61): "good",
    (0.1, 0.9, 0.5): "inaccuracy",
    (0.1, 0.5, 0.19): "mistake",
    (0.1, 0.1, -0.2): "mistake",
    (0.1, 0.2, -0.2): "blunder",
    (0.0, -0.3, -1.0): "inaccuracy",
}


def test_marks_of_1000_moves_are_those_of_a_plain_computation_and_estimates_follow_their_definition(page, solver):
    moves = shipped_moves(1000)
    scores = [solver.scores(position) for position, _ in moves]
    script = """async ([scores, moves]) => (await import("./review.js")).marks(scores, moves)"""
    given = [[None if score == FULL_COLUMN else score for score in row] for row in scores]
    shown = page.evaluate(script, [given, "".join(str(column + 1) for _, column in moves)])
    assert shown == [mark(solver, position, column) for position, column in moves]
    assert {*shown} == {"only move", "best", "good", "inaccuracy", "mistake", "blunder", "forced"}
    script = """async (cases) => {
      const { estimatedMarks } = await import("./review.js");
      return cases.map(([share, value, after]) =>
        estimatedMarks([{ policy: [share, 0.5, 0, 0, 0, 0, 0], value }, { policy: [], value: -after }], "1")[0]);
    }"""
    assert page.evaluate(script, [*ESTIMATES]) == [*ESTIMATES.values()]


def test_a_blunder_is_found_and_what_was_better_is_shown(page, solver):
    game = with_blunder(solver, ply=12)
    expected = marks(solver, game)
    assert errors_of(expected) == [13]
    reviewed(page, game)
    check_page(page, expected)
    assert page.inner_text("#analysis-accuracy-1") == "100 %"
    page.get_by_role("button", name="13. Red").click()
    assert stones(page) == 12
    page.wait_for_selector("#analysis-line button")
    line = "".join(page.locator("#analysis-line button").all_inner_texts())
    for ply, text in enumerate(line):
        scores = solver.scores(rules.from_moves(game[:12] + line[:ply]))
        assert scores[int(text) - 1] == max(scores)
    assert page.inner_text("#status") == f"Red played column {game[12]}, a blunder: column {line[0]} was better."
    assert f"Move 13: Red plays column {game[12]}, a blunder: Yellow wins in" in page.inner_text("#analysis-detail")
    assert f"Column {line[0]} is better: Red wins in" in page.inner_text("#analysis-detail")
    marked = "[...document.querySelectorAll('#board .columns button')].findIndex((one) => one.matches('.better'))"
    assert page.evaluate(marked) == int(line[0]) - 1

    page.locator("#analysis-line button").nth(2).click()
    assert stones(page) == 15
    assert page.inner_text("#status") == "Best line, move 3 of 10: Yellow to move."
    page.locator("#board .columns button").nth(int(line[3]) - 1).click()
    assert stones(page) == 16
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#status").startswith("Best line, move 5 of 10")
    page.get_by_role("button", name="Back to the game").click()
    assert stones(page) == 12
    assert page.evaluate("location.hash.slice(1)") == game


def test_a_link_opens_in_the_analysis_without_a_reply_and_the_own_game_stays(page, server):
    pages.start(page, "44", first="person", second="person")
    pages.visit(page)
    assert page.get_attribute("#tab-play", "aria-selected") == "true", "the page's own address"
    pages.visit(page, f"{server}?shared#4441")
    assert page.get_attribute("#tab-analysis", "aria-selected") == "true"
    pages.visit(page)
    assert (page.get_attribute("#tab-analysis", "aria-selected"), stones(page)) == ("true", 4)
    page.wait_for_selector("#solver-strip[data-state=shown]")
    page.wait_for_timeout(600)
    assert stones(page) == 4
    page.get_by_role("button", name="Play this position").click()
    assert page.get_attribute("#tab-play", "aria-selected") == "true"
    assert pages.moves_of(page).startswith("4441")


def test_the_mistakes_of_a_review_can_be_retried_one_after_another(page, solver):
    game = "4455"
    expected = marks(solver, game)
    assert errors_of(expected) == [3, 4]
    reviewed(page, game)
    page.get_by_role("button", name="Retry the mistakes").click()
    pages.status_says(page, "Red played column 5?? Find a better one.")
    assert stones(page) == 2
    for part in ("#under-board", "#analysis-result"):
        assert page.is_hidden(part), "nothing tells the answer"
    page.keyboard.press("5")
    pages.status_says(page, "Column 5: Yellow wins in")
    assert stones(page) == 3
    page.get_by_role("button", name="Try again").click()
    assert stones(page) == 2
    page.keyboard.press("1")
    pages.status_says(page, "Column 1: ", "Try again.")
    best = [score == max(scores) for scores in [solver.scores(rules.from_moves("44"))] for score in scores].index(True)
    page.keyboard.press(str(best + 1))  # without "Try again"
    pages.status_says(page, f"Right! Column {best + 1} is better: Red wins in")
    assert page.evaluate("location.hash") == "#4455"
    page.get_by_role("button", name="Next").click()
    assert page.inner_text("#retry-text") == "Mistake 2 of 2"
    pages.status_says(page, "Yellow played column 5??")
    page.get_by_role("button", name="Solution").click()
    pages.status_says(page, "was better:")
    page.get_by_role("button", name="Finish").click()
    pages.status_says(page, "0 of 2 at the first try.")
    page.get_by_role("button", name="Back to the review").click()
    assert page.is_visible("#analysis-result")
    assert page.is_visible("#under-board")
    assert page.evaluate("document.activeElement.id") == "analysis-retry"


@pytest.mark.parametrize("missing", [["solver"], ["solver", "guided"]])
def test_without_the_solver_a_search_grades_or_a_line_says_why_not(browser, server, missing):
    with pages.open_page(browser, server) as page:

        def without(route):
            catalogue = route.fetch().json()
            catalogue["players"] = [player for player in catalogue["players"] if player["kind"] not in missing]
            route.fulfill(json=catalogue)

        page.route("**/api/v1/players", without)
        pages.visit(page)
        if missing == ["solver"]:
            reviewed(page, "4455")
            assert page.inner_text("#analysis-note").endswith("with a search of 400 simulations")
            assert grades(page)[-1] in ("mistake", "blunder")
            page.locator("#moves button").last.click()
            detail = page.inner_text("#analysis-detail")
            better = re.search(r"Column ([36]) is better: value [+−]?\d\.\d\d\.", detail)
            assert better, detail
            first = "better => document.querySelector('#analysis-line button')?.textContent === better"
            pages.wait_for(page, first, better[1])
        else:
            page.get_by_role("tab", name="Analysis").click()
            assert page.get_by_role("button", name="Analyse game").is_disabled()
            assert "that needs the solver, or a network with a value" in page.inner_text("#analysis-note")
