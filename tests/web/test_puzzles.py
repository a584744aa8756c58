"""The page's puzzles and opening explorer, in headless Chromium. Properties:

- the right column is praised with its reason, its line can be stepped through and played out, and the streak grows; a
  wrong one is refuted as the scores say, ends the streak, and can be tried again; the streak outlives a reload;
- the solution can be asked for; it ends the streak, and no puzzle's answer asks an engine;
- tactic and difficulty choose among the puzzles;
- news come in live regions; a full column is refused; no opinion shows before the answer;
- the person's own game is there again afterwards, and the address keeps it meanwhile;
- the explorer lists Python's counts, shares, results and exact classes for the position looked at, mirrored ones too; a
  click and a stone walk; beyond the book it says so and leads back.
"""

import json
from pathlib import Path

import pytest

from distill.game import rules
from distill.web.api import PAGE
from experiments.page import openings
from tests import pages
from tests.pages import status_says as says
from tests.pages import stones

STORED = json.loads((PAGE / "puzzles.json").read_text())
PUZZLES = {values[0]: dict(zip(STORED["fields"], values, strict=True)) for values in STORED["puzzles"]}
BOOK = json.loads((PAGE / "openings.json").read_text())


@pytest.fixture(scope="module")
def server():
    with pages.serving("--max-simulations", "100") as address:
        yield address


def choose(page, tactic: str = "", difficulty: str = "") -> dict:
    """Go to the puzzles, take one of a kind, and return it."""
    page.click("#tab-puzzles")
    page.wait_for_selector("#puzzle-next:visible")
    page.select_option("#puzzle-tactic", tactic)
    page.select_option("#puzzle-difficulty", difficulty)
    page.evaluate("document.activeElement.blur()")
    puzzle = shown(page)
    assert tactic in ("", puzzle["tactic"])
    assert difficulty in ("", puzzle["difficulty"])
    return puzzle


def shown(page) -> dict:
    return PUZZLES[page.input_value("#game-text")]


def wrong_column(puzzle: dict, score: int | None = None) -> int:
    fitting = (c for c, reply in enumerate(puzzle["replies"]) if reply != "-" and score in (None, puzzle["scores"][c]))
    return next(fitting) + 1


def streak(page) -> str:
    return page.inner_text("#puzzle-streak").split(" · ")[-1]


def test_the_right_column_is_praised_and_its_line_can_be_walked(page):
    puzzle = choose(page, "long-win")
    own = "Red" if len(puzzle["moves"]) % 2 == 0 else "Yellow"
    count = (puzzle["plies"] + 1) // 2
    says(page, f"{own} to move and win in {count}.")
    page.keyboard.press(str(puzzle["solution"]))
    says(page, f"Right! {own} wins in {count}.")
    assert "force the win" in page.inner_text("#puzzle-text")
    assert " ".join(puzzle["line"]) in page.inner_text("#puzzle-text")
    assert streak(page) == "1 in a row, best 1"
    assert stones(page) == len(puzzle["moves"]) + 1
    missed = [STORED["players"][place].split(":")[0] for place in puzzle["missed"]]
    told = page.inner_text("#puzzle-missed")
    assert all(("search" if name == "uct" else name) in told for name in missed)
    assert missed or "None of" in told
    page.keyboard.press(".")
    says(page, "Move 2 from the puzzle on")
    assert stones(page) == len(puzzle["moves"]) + 2
    page.click("#puzzle-line")
    says(page, f"{own} wins with four in a row")
    assert stones(page) == len(puzzle["moves"] + puzzle["line"])
    page.click("#puzzle-next")
    assert shown(page) != puzzle


def test_a_wrong_column_is_refuted_and_ends_the_streak(page):
    puzzle = choose(page, "win")
    page.keyboard.press(str(puzzle["solution"]))
    says(page, "Right!", "wins at once")
    assert page.is_hidden("#puzzle-line")
    page.keyboard.press("n")
    assert streak(page) == "1 in a row, best 1"
    puzzle = choose(page, "block")
    other = "Yellow" if len(puzzle["moves"]) % 2 == 0 else "Red"
    column = next(
        c for c in range(1, 8) if puzzle["replies"][c - 1] == str(puzzle["solution"]) and puzzle["scores"][c - 1] < 0
    )
    page.keyboard.press(str(column))
    says(page, f"Not column {column}: {other} answers {puzzle['solution']} and wins at once.")
    pages.wait_for_stones(page, len(puzzle["moves"]) + 2)
    assert page.locator(".won-ring").count() >= 4
    assert streak(page) == "0 in a row, best 1"
    page.click("#puzzle-again")
    says(page, "to move and")
    assert stones(page) == len(puzzle["moves"])
    page.keyboard.press(str(puzzle["solution"]))
    says(page, "Right!")
    assert streak(page) == "0 in a row, best 1", "not at the first try"
    pages.visit(page)
    page.click("#tab-puzzles")
    page.wait_for_selector("#puzzle-next:visible")
    assert streak(page) == "0 in a row, best 1"
    assert page.input_value("#puzzle-tactic") == "block"
    assert shown(page)["tactic"] == "block"


def test_the_solution_can_be_asked_for_and_no_engine_is(page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    puzzle = choose(page, "only-draw", "hard")
    says(page, "to move and hold the draw.")
    assert page.is_hidden("#strips"), "opinions wait for the answer"
    if None in puzzle["scores"]:  # which puzzle comes is drawn
        full = puzzle["scores"].index(None) + 1
        page.keyboard.press(str(full))
        says(page, f"Column {full} is full.")
    page.wait_for_timeout(300)
    assert {Path(url).name for url in asked} <= {"puzzles.json"}
    page.click("#puzzle-show")
    says(page, f"The solution is column {puzzle['solution']}.")
    assert streak(page) == "0 in a row, best 0"
    assert "lost" in page.inner_text("#puzzle-text")
    assert page.evaluate("document.activeElement.id") == "puzzle-next", "the pressed button is gone"
    assert not any(url.endswith("/api/v1/move") for url in asked)


def test_the_persons_own_game_waits(page):
    page.select_option("#player-1", "person")
    for key in "4435":
        page.keyboard.press(key)
    own = page.evaluate("location.hash")
    assert own == "#4435"
    puzzle = choose(page)
    page.keyboard.press(str(puzzle["solution"]))
    assert page.evaluate("location.hash") == own
    page.click("#tab-openings")
    page.wait_for_selector(".opening")
    assert page.input_value("#game-text") == "4435"
    page.keyboard.press("4")
    assert page.evaluate("location.hash") == own
    page.evaluate("location.hash = '7172'")  # a link that is followed is a game to play
    says(page, "Yellow played column 2")
    assert page.get_attribute("#tab-play", "aria-selected") == "true"


def expected(moves: str) -> list[str]:
    """What the explorer's buttons say of a position, from the file by Python's own reading."""
    position = rules.from_moves(moves)
    name, is_mirrored = openings.key(position)
    scores, played = BOOK["positions"][name]
    is_symmetric = rules.mirror(position) == position
    counts = {8 - column if is_mirrored else column: rest for column, *rest in played}
    lines = []
    for column in range(1, 8):
        score = scores[7 - column if is_mirrored else column - 1]
        if score is None or (is_symmetric and column > 4):
            continue
        games, chosen, won, drawn = counts.get(column, (0, 0, 0, 0))
        label = f"{column} or {8 - column}" if is_symmetric and column < 4 else str(column)
        # A score is 22 less the winner's stones at the end: its stones now are those of the plies already played.
        own = len(moves) // 2 if score > 0 else (len(moves) + 1) // 2
        worth = f"{'wins' if score > 0 else 'loses'} in {22 - abs(score) - own}" if score else "draw"
        shares = [round_up(100 * part / games) for part in (won, drawn, games - won - drawn)] if games else None
        results = f", Red won {shares[0]} percent, drawn {shares[1]}, Yellow won {shares[2]}" if shares else ""
        line = f"Column {label}: {games:,} games, {chosen:,} chosen by the search{results}; best play: {worth}"
        lines.append((-games, column, line))
    return [line for _, _, line in sorted(lines)]


def round_up(number: float) -> int:
    """As JavaScript rounds: halves up."""
    return int(number + 0.5)


def listed(page) -> list[str]:
    return page.locator(".opening").evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))")


def explore(page, moves: str) -> None:
    page.click("#tab-openings")
    page.wait_for_selector(".opening")
    page.fill("#game-text", moves)
    page.press("#game-text", "Enter")
    page.evaluate("document.activeElement.blur()")


@pytest.mark.parametrize("moves", ["", "4", "1", "7", "44", "26", "62", "4453"])
def test_the_explorer_lists_pythons_counts_and_classes(page, moves):
    explore(page, moves)
    assert len(expected(moves)) >= 4
    assert listed(page) == expected(moves)


def test_clicks_stones_and_keys_walk_the_book_and_out_of_it(page):
    explore(page, "")
    says(page, "Red to move. 20,000 of 20,000 games were here.")
    page.get_by_role("button", name="Column 4: ").click()
    assert page.input_value("#game-text") == "4"
    assert listed(page) == expected("4")
    assert page.evaluate("document.activeElement.classList.contains('opening')"), "focus stays in the list"
    page.keyboard.press("4")
    page.get_by_role("button", name="Column 3, empty").click()
    assert listed(page) == expected("443")
    page.keyboard.press("u")
    page.keyboard.press("1")
    page.keyboard.press("1")
    known = page.input_value("#game-text")
    while page.locator(".opening").count():
        known = page.input_value("#game-text")
        page.keyboard.press("1" if known.count("1") < 5 else "7")
    says(page, "The book ends here.")
    assert page.inner_text("#openings-title") == "Beyond the book"
    page.click("#openings-back")
    assert listed(page) == expected(known)


def test_a_file_that_does_not_come_is_told_of(browser, server):
    with pages.open_page(browser, server, ignore=("503",)) as page:
        page.route("**/*.json", lambda route: route.fulfill(status=503, body=""))
        page.click("#tab-puzzles")
        says(page, "The puzzles cannot be fetched.")
        page.keyboard.press("4")
        assert stones(page) == 0
        page.click("#tab-openings")
        says(page, "The openings cannot be fetched.")
        page.unroute("**/*.json")
        page.click("#tab-puzzles")
        says(page, "to move and")
