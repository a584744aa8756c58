"""The tab "Review" in headless Chromium against `python -m distill.serve`. Properties:

- the browser's marks are Python's: 1,000 moves of shipped games by the same scores, and whole games by the same values
  and shares of visits;
- two games by the button, each as Python reviews it: a planted blunder, random players; marks stand in
  the list of moves and on the graph, and no move with the best score is called an error;
- a mistake that is chosen, in the list, among the moves or on the graph, leads to the position before it, with the
  better column on the board and Python's line, which can be stepped by its numbers and by the marked column;
- a reviewed game stays as it is until another tab; a changed one has no review;
- the graph is a slider that tells each position;
- without the solver a network's search judges and says so; without both the button is off and a line says why;
- the image is a PNG with the board, the moves and their marks;
- the console stays silent (`pages.open_page`).
"""

import io
import random
import re

import pytest
from helpers import game_at_random
from matplotlib import image
from review_helpers import shipped_moves, with_blunder

from distill.datasets.benchmark import FULL_COLUMN
from distill.game import rules
from distill.players import review
from distill.players.solver import Solver
from tests import pages
from tests.pages import stones

pytest.importorskip("bitbully", reason="the solver is an optional extra")


@pytest.fixture(scope="module")
def server():
    with pages.serving("--max-simulations", "40") as address:
        yield address


@pytest.fixture(scope="module")
def solver() -> Solver:
    return Solver()


@pytest.fixture(scope="module")
def grader() -> review.Grader:
    return review.Grader("solver")


def reviewed(page, game: str) -> None:
    """Load a game and have it reviewed."""
    page.select_option("#player-1", "person")
    page.fill("#game-text", game)
    page.press("#game-text", "Enter")
    page.get_by_role("tab", name="Review").click()
    page.get_by_role("button", name="Review this game").click()
    page.wait_for_selector("#review-result:not([hidden])")


def grades(page) -> list[str]:
    return page.evaluate("[...document.querySelectorAll('#moves button')].map((chip) => chip.dataset.grade)")


def errors_of(found: review.Review) -> list[review.Move]:
    return [move for move in found.moves if move.mark in review.ERRORS]


def check_page(page, found: review.Review) -> None:
    """Accuracy, marks in the list of moves, signs on the graph and the list of errors are those of Python."""
    shown = [page.inner_text(f"#review-accuracy-{side}") for side in (0, 1)]
    assert shown == [f"{percent} %" for percent in found.accuracy]
    words = {"best": "best move", "good": "", "forced": ""}
    assert grades(page) == [words.get(move.mark, move.mark) for move in found.moves]
    signs = page.evaluate(
        "[...document.querySelectorAll('#review-graph .sign')].map((sign) => [+sign.dataset.ply, sign.dataset.mark])"
    )
    assert signs == [[move.number - 1, move.mark] for move in found.moves if move.mark in review.SIGNS]
    listed = page.locator("#review-errors button").all_inner_texts()
    assert [text.strip().split(".")[0] for text in listed] == [str(move.number) for move in errors_of(found)]
    assert page.inner_text("#review-note") == "By the solver: exact."


def test_the_browsers_marks_and_estimates_are_pythons(page, solver):
    moves = shipped_moves(1000)
    scores = [solver.scores(position) for position, _ in moves]
    script = """async ([scores, moves]) => (await import("./review.js")).marks(scores, moves)"""
    given = [[None if score == FULL_COLUMN else score for score in own] for own in scores]
    found = page.evaluate(script, [given, "".join(str(column + 1) for _, column in moves)])
    assert found == [review.mark(own, column) for own, (_, column) in zip(scores, moves, strict=True)]
    dice = random.Random(3)
    games = []
    for seed in range(40):
        game = game_at_random(seed)
        opinions = []
        for ply in range(len(game)):
            legal = rules.legal_columns(rules.from_moves(game[:ply]))
            shares = [dice.random() ** 3 if column in legal else 0.0 for column in range(7)]
            opinions.append(
                {"policy": [share / sum(shares) for share in shares], "value": dice.uniform(-1, 1), "scores": None}
            )
        games.append((game, opinions))
    script = """async (games) => {
      const { estimatedMarks } = await import("./review.js");
      return games.map(([moves, opinions]) => estimatedMarks(opinions, moves));
    }"""
    seen = set()
    for (game, opinions), found in zip(games, page.evaluate(script, games), strict=True):
        for ply, mark in enumerate(found):
            after = rules.from_moves(game[: ply + 1])
            worth = float(rules.is_won(after)) if rules.is_over(after) else -opinions[ply + 1]["value"]
            own = opinions[ply]
            expected = review.estimated_mark(own["policy"], int(game[ply]) - 1, own["value"], worth)
            is_forced = len(rules.legal_columns(rules.from_moves(game[:ply]))) == 1
            assert mark == ("forced" if is_forced else expected)
            seen.add(mark)
    assert seen >= {"best", "good", *review.ERRORS}


def test_a_planted_blunder_is_found_and_what_was_better_is_shown(page, solver, grader):
    game = with_blunder(solver, ply=12)
    found = review.review(game, grader)
    (error,) = errors_of(found)
    reviewed(page, game)
    check_page(page, found)
    page.get_by_role("button", name="13. Red").click()
    assert stones(page) == 12
    assert f"better is column {error.better + 1}" in page.inner_text("#status")
    assert f"Move 13: Red plays column {game[12]}, a blunder: Yellow wins in" in page.inner_text("#review-detail")
    assert f"Better is column {error.better + 1}: Red wins in" in page.inner_text("#review-detail")
    page.wait_for_selector("#review-line button")
    assert "".join(page.locator("#review-line button").all_inner_texts()) == error.line
    marked = "[...document.querySelectorAll('#board .columns button')].findIndex((one) => one.matches('.better'))"
    assert page.evaluate(marked) == error.better

    page.locator("#review-line button").nth(2).click()
    assert stones(page) == 15
    assert page.inner_text("#status") == "Best play, move 3 of 10."
    assert page.evaluate(marked) == int(error.line[3]) - 1
    page.locator("#board .columns button").nth(int(error.line[3]) - 1).click()
    assert stones(page) == 16
    page.get_by_role("button", name="Back to the game").click()
    assert stones(page) == 12
    assert page.evaluate("location.hash.slice(1)") == game


def test_random_players_are_reviewed_and_every_way_to_a_mistake_leads_before_it(page, grader):
    game = game_at_random(4)
    found = review.review(game, grader)
    reviewed(page, game)
    check_page(page, found)
    first, second, *_ = errors_of(found)
    page.locator("#moves button").nth(second.number - 1).click()
    assert stones(page) == second.number - 1
    graph = page.locator("#review-graph")
    graph.scroll_into_view_if_needed()
    width = graph.bounding_box()["width"]
    graph.click(position={"x": width * (first.number - 0.5) / (len(game) + 1), "y": 20})
    assert stones(page) == first.number - 1
    assert page.locator("#review-errors [aria-current]").inner_text().strip().startswith(f"{first.number}.")


def test_a_reviewed_game_stays_and_a_changed_one_has_no_review(page):
    reviewed(page, "4455")
    graph = page.get_by_role("slider", name="Evaluation after each move")
    graph.focus()
    for key, after in (("End", 4), ("Home", 0), ("PageDown", 2), ("Home", 0)):
        page.keyboard.press(key)
        assert stones(page) == after
    assert graph.get_attribute("aria-valuetext") == "After 0 moves: Red wins in 21 moves; next red plays 4, only move"
    page.locator("#board .columns button").nth(0).click()
    assert "A reviewed game stays as it is" in page.inner_text("#status")
    assert page.evaluate("location.hash.slice(1)") == "4455"
    page.locator("#board .columns button").nth(3).click()  # the game's own move goes on
    assert stones(page) == 1
    page.keyboard.press("u")
    page.get_by_role("button", name="One move forward").click()
    page.get_by_role("button", name="Take back").click()
    assert stones(page) == 0
    assert page.evaluate("location.hash.slice(1)") == "4455"
    page.locator("#board .columns button").nth(0).click()
    page.get_by_role("tab", name="Play").click()
    assert grades(page)[2] == "blunder"
    page.keyboard.press("1")
    assert page.evaluate("location.hash.slice(1)") == "1"
    assert grades(page) == [""]
    page.get_by_role("tab", name="Review").click()
    assert not page.is_visible("#review-result")


@pytest.mark.parametrize("missing", [["solver"], ["solver", "guided"]])
def test_without_the_solver_a_search_judges_or_a_line_says_why_not(browser, server, missing):
    with pages.open_page(browser, server) as page:

        def without(route):
            catalogue = route.fetch().json()
            catalogue["players"] = [player for player in catalogue["players"] if player["kind"] not in missing]
            route.fulfill(json=catalogue)

        page.route("**/api/v1/players", without)
        pages.visit(page)
        if missing == ["solver"]:
            reviewed(page, "4455")
            assert page.inner_text("#review-note").endswith("with a search of 40 simulations: an estimate.")
            assert grades(page)[-1] in ("mistake", "blunder")
            page.locator("#moves button").last.click()
            detail = page.inner_text("#review-detail")
            better = re.search(r"Better is column ([36]): value [+−]\d\.\d\d\.", detail)
            assert better, detail
            first = "better => document.querySelector('#review-line button')?.textContent === better"
            pages.wait_for(page, first, better[1])
        else:
            page.get_by_role("tab", name="Review").click()
            assert page.get_by_role("button", name="Review this game").is_disabled()
            assert "it needs the solver, or a network with a value" in page.inner_text("#review-note")


def test_the_image_is_a_png_of_board_moves_and_marks(page):
    game = "4455"
    reviewed(page, game)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save image").click()
    assert download.value.suggested_filename == "connect4-4455.png"
    data = download.value.path().read_bytes()
    pixels = (255 * image.imread(io.BytesIO(data))[:, :, :3]).round().astype(int)
    assert pixels.shape[1] == 1000

    def at(row: int, column: int) -> tuple[int, ...]:
        return tuple(pixels[120 + round(104 * (row + 0.5)) + 34, 136 + round(104 * (column + 0.5))].tolist())

    red, yellow, hole = (0xCF, 0x2F, 0x38), (0xFF, 0xC0, 0x2E), (0xDF, 0xE4, 0xF6)
    assert [at(5, 3), at(4, 3), at(5, 4), at(4, 4), at(0, 0), at(3, 3)] == [red, yellow, red, yellow, hole, hole]
    assert (pixels == (0x1B, 0x20, 0x30)).all(2)[780:].sum() > 1000, "signs beside moves"
    assert grades(page) == ["only move", "best move", "blunder", "blunder"]
