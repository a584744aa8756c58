"""The page's puzzles and opening explorer, in headless Chromium: a puzzle is played to the end as the file says; only
the first try moves the streak; the rating follows Glicko's formula, with half a point for a later try; the explorer
lists what the file says, for mirrored positions too.
"""

import datetime
import json
import math
from pathlib import Path

from distill.game import rules
from distill.game.rules import COLUMNS, COLUMNS_FROM_CENTRE, ROWS
from distill.web.api import PAGE
from experiments.page import openings
from tests import pages
from tests.pages import status_says as says
from tests.pages import stones

STORED = json.loads((PAGE / "puzzles.json").read_text())
PUZZLES = [dict(zip(STORED["fields"], values, strict=True)) for values in STORED["puzzles"]]
BY_ID = {puzzle["id"]: puzzle for puzzle in PUZZLES}
BOOK = json.loads((PAGE / "openings.json").read_text())


def sign(score: int) -> int:
    return (score > 0) - (score < 0)


class Walk:
    """A puzzle's tree, walked along the first best columns; columns are digits."""

    def __init__(self, puzzle: dict):
        self.puzzle, self.moves, self.index = puzzle, puzzle["moves"], 0

    @property
    def scores(self) -> list:
        return self.puzzle["nodes"][self.index][0]

    @property
    def score(self) -> int:
        return max(score for score in self.scores if score is not None)

    @property
    def right(self) -> str:
        return str(next(column for column in COLUMNS_FROM_CENTRE if self.scores[column] == self.score) + 1)

    def reply(self, column: str) -> str:
        return self.puzzle["nodes"][self.index][1][int(column) - 1].replace("-", "")

    def go_on(self) -> bool:
        """Play the right column and its reply; whether the puzzle goes on."""
        column, (_, _, *following) = self.right, self.puzzle["nodes"][self.index]
        self.moves += column + self.reply(column)
        self.index = following[0][int(column) - 1] if following else 0
        return self.index > 0

    def wrong(self) -> list[str]:
        """Columns that lose the win or the draw, where the opponent has an answer."""
        legal = [(str(number), score) for number, score in enumerate(self.scores, 1) if score is not None]
        return [column for column, score in legal if sign(score) < sign(self.score) and self.reply(column)]


def find(condition) -> tuple[dict, int]:
    """The first puzzle with a move of the person where a condition holds, and the number of that move."""
    for puzzle in PUZZLES:
        walk, number, is_on = Walk(puzzle), 0, True
        while is_on:
            if condition(puzzle, number, walk):
                return puzzle, number
            is_on, number = walk.go_on(), number + 1
    raise AssertionError("no such puzzle")


def in_moves(score: int, ply: int) -> str:
    """When the winner wins: 22 less the score are its stones at the end."""
    own = ply // 2 if score > 0 else (ply + 1) // 2
    count = 22 - abs(score) - own
    return "at once" if count == 1 else f"in {count}"


def colours(puzzle: dict) -> tuple[str, str]:
    return ("Red", "Yellow") if len(puzzle["moves"]) % 2 == 0 else ("Yellow", "Red")


def follow(page, puzzle: dict) -> None:
    """Open a puzzle by its link."""
    page.evaluate("id => { location.hash = 'puzzle/' + id; }", puzzle["id"])
    pages.wait_for(page, "id => JSON.parse(localStorage['distill-puzzles'] ?? '{}').current === id", puzzle["id"])
    page.wait_for_selector("#puzzle-next:visible")


def press(page, walk: Walk, column: str) -> None:
    """Drop a stone and wait for the answer to it."""
    page.keyboard.press(column)
    pages.wait_for_stones(page, len(walk.moves) + 1 + len(walk.reply(column)))


def solve(page, puzzle: dict, to: int | None = None) -> Walk:
    """Play the right columns, so many or all; returns where this leads."""
    return go_on(page, Walk(puzzle), to)


def go_on(page, walk: Walk, to: int | None = None) -> Walk:
    for _ in range(COLUMNS * ROWS if to is None else to):
        press(page, walk, walk.right)
        if not walk.go_on():
            break
    return walk


def shown(page) -> dict:
    return BY_ID[page.evaluate("JSON.parse(localStorage['distill-puzzles']).current")]


def streak(page) -> tuple[str, str]:
    return page.inner_text("#puzzle-streak"), page.inner_text("#puzzle-best")


def rated(rating: float, deviation: float, other: float, score: float) -> tuple[float, float]:
    """Glicko's formula for one result against a rating with deviation 60."""
    q = math.log(10) / 400
    g = 1 / math.sqrt(1 + 3 * (q * 60 / math.pi) ** 2)
    expected = 1 / (1 + 10 ** (-g * (rating - other) / 400))
    square = 1 / (q * q * g * g * expected * (1 - expected))
    precision = 1 / deviation**2 + 1 / square
    return rating + q / precision * g * (score - expected), max(50, math.sqrt(1 / precision))


def test_a_puzzle_is_played_to_the_end_with_the_opponents_answers(page):
    puzzle, _ = find(lambda one, k, _: k == 2 and one["tactic"] == "long-win")
    own, other = colours(puzzle)
    follow(page, puzzle)
    walk = Walk(puzzle)
    says(page, f"{own} to move and win {in_moves(walk.score, len(walk.moves))}.")
    assert page.inner_text("#puzzle-rating") == "500?"
    while True:
        reply = walk.reply(walk.right)
        press(page, walk, walk.right)
        if not walk.go_on():
            break
        soon = in_moves(walk.score, len(walk.moves))
        says(page, f"Right! {other} replies {reply}. Now win {soon}.")
    says(page, f"Solved! {own} wins.")
    assert rules.is_won(rules.from_moves(walk.moves))
    assert stones(page) == len(walk.moves)
    told = page.inner_text("#puzzle-text")
    assert "forces the win" in told
    assert " ".join(walk.moves[len(puzzle["moves"]) :]) in told
    assert streak(page) == ("1", "1")
    rating, deviation = rated(500, 200, puzzle["rating"], 1)
    assert page.inner_text("#puzzle-rating") == f"{round(rating)}{'?' * (deviation > 110)} +{round(rating) - 500}"
    page.click("#puzzle-line")
    pages.wait_for_stones(page, len(puzzle["moves"]) + 1)
    pages.wait_for_stones(page, len(walk.moves))
    page.keyboard.press(",")
    says(page, "after the puzzle")
    page.click("#puzzle-next")
    assert shown(page) != puzzle


def test_a_wrong_column_is_refuted_at_any_move_and_only_the_first_try_counts(page):
    puzzle, k = find(lambda one, k, walk: k == 1 and walk.wrong() and len(one["nodes"]) < 8)
    own, other = colours(puzzle)
    follow(page, puzzle)
    walk = solve(page, puzzle, to=k)
    column = walk.wrong()[0]
    press(page, walk, column)
    score = walk.scores[int(column) - 1]
    result = f"wins {in_moves(score, len(walk.moves))}" if score else "holds the draw"
    says(page, f"Column {column} fails: {other} replies {walk.reply(column)} and {result}.")
    assert page.inner_text("#puzzle-text") == "Try another column."
    assert streak(page) == ("0", "0")
    assert page.inner_text("#puzzle-rating") == "500?", "a wrong column costs nothing"
    assert page.is_hidden("#puzzle-next"), "what comes next is another try"
    page.click("#puzzle-again")
    says(page, f"{own} to move and")
    assert stones(page) == len(walk.moves), "from the move that failed, not from the first"
    go_on(page, walk)
    says(page, "Solved!")
    assert streak(page) == ("0", "0")
    after = page.inner_text("#puzzle-rating")
    rating, deviation = rated(500, 200, puzzle["rating"], 0.5)
    gain = round(rating) - 500
    assert after == f"{round(rating)}{'?' * (deviation > 110)} {'−' if gain < 0 else '+'}{abs(gain)}"
    pages.visit(page)
    page.click("#tab-puzzles")
    page.wait_for_selector("#puzzle-next:visible")
    assert page.inner_text("#puzzle-rating") == after.split(" ")[0]
    follow(page, puzzle)
    solve(page, puzzle)
    says(page, "Solved!")
    assert streak(page) == ("0", "0"), "it counts once"
    assert page.inner_text("#puzzle-rating") == after.split(" ")[0]


def tries(page) -> list[str]:
    return page.evaluate("[...document.querySelectorAll('#daily-squares i')].map((one) => one.className)")


def test_the_puzzle_of_the_day_is_one_of_the_file_by_the_date_and_its_tries_are_copied(browser, server):
    with pages.open_page(browser, f"{server}?#daily", permissions=["clipboard-read", "clipboard-write"]) as page:
        page.clock.install(time="2026-11-28T10:00:00")
        pages.visit(page)
        page.wait_for_selector("#puzzle-next:visible")
        days = (datetime.date(2026, 11, 28) - datetime.date(1970, 1, 1)).days
        puzzle = PUZZLES[days * 257 % len(PUZZLES)]
        assert math.gcd(257, len(PUZZLES)) == 1, "every puzzle has its day before one comes again"
        assert shown(page) == puzzle
        assert "Puzzle of 28 November" in page.inner_text("#puzzle-facts")
        walk, squares = Walk(puzzle), ""
        if wrong := walk.wrong():
            press(page, walk, wrong[0])
            squares += "🟥"
            assert tries(page) == ["wrong"]
            pages.visit(page)  # the tries stay
            page.wait_for_selector("#puzzle-next:visible")
            assert tries(page) == ["wrong"]
        while True:
            press(page, walk, walk.right)
            squares += "🟩"
            if not walk.go_on():
                break
        says(page, "Solved!")
        page.get_by_role("button", name="Copy result").click()
        pages.wait_for(page, "document.getElementById('puzzle-copied').textContent.includes('copied')")
        number = "2 tries" if wrong else "1 try"
        assert page.evaluate("navigator.clipboard.readText()").split("\n") == [
            f"Connect 4, puzzle of 28 November: solved in {number}", squares, f"{server}#daily",
        ]  # fmt: skip
        page.get_by_role("button", name="Daily puzzle").click()
        says(page, "to move and")
        page.keyboard.press(walk.right if len(walk.moves) == len(puzzle["moves"]) else Walk(puzzle).right)
        assert len(tries(page)) == len(squares), "the first result stays"
        page.keyboard.press("n")
        assert page.evaluate("location.hash").startswith("#puzzle/")


def test_a_link_opens_its_puzzle(browser, server):
    puzzle = PUZZLES[123]
    permissions = ["clipboard-read", "clipboard-write"]
    with pages.open_page(browser, f"{server}#puzzle/{puzzle['id']}", permissions=permissions) as page:
        page.wait_for_selector("#puzzle-next:visible")
        assert page.get_attribute("#tab-puzzles", "aria-selected") == "true"
        assert shown(page) == puzzle
        assert stones(page) == len(puzzle["moves"])
        page.click("#puzzle-copy")
        pages.wait_for(page, "document.getElementById('puzzle-copied').textContent.includes('copied')")
        assert page.evaluate("navigator.clipboard.readText()") == f"{server}#puzzle/{puzzle['id']}"
        page.click("#puzzle-next")
        assert page.evaluate("location.hash") == f"#puzzle/{shown(page)['id']}"
        pages.visit(page)
        page.wait_for_selector("#puzzle-next:visible")
        page.evaluate("location.hash = 'puzzle/nowhere'")
        says(page, "There is no puzzle “nowhere”. Here is another one:")
        page.click("#tab-play")
        assert page.evaluate("location.hash") == ""


BROKEN = (
    '{"difficulty": "fiendish", "tactic": "fork"}',
    '{"rating": {"rating": "NaN"}, "done": 3, "streak": "x"}',
    '{"players": "x", "network": 3, "club": "x"}',
    '{"players": ["club"]}',
    "3",
    "{",
)


def test_an_unknown_stored_choice_or_a_broken_store_stops_nothing(page):
    keys = ["distill", "distill-puzzles", "distill-analysis", "distill-scores"]
    for kept in BROKEN:
        page.evaluate("([keys, kept]) => { for (const key of keys) localStorage[key] = kept; }", [keys, kept])
        pages.visit(page)
        page.click("#tab-puzzles")
        page.wait_for_selector("#puzzle-next:visible")
        assert page.input_value("#puzzle-difficulty") == page.input_value("#puzzle-tactic") == ""
        assert page.inner_text("#puzzle-rating") == "500?"
        says(page, "to move and")


def test_the_solution_can_be_asked_for_and_no_engine_is_and_a_stone_on_an_earlier_position_is_no_answer(page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    puzzle, _ = find(lambda one, k, walk: k == 0 and None in walk.scores and walk.score == 0 and walk.wrong())
    follow(page, puzzle)
    assert page.is_hidden("#share"), "no game is pasted there"
    walk = Walk(puzzle)
    full = walk.scores.index(None) + 1
    page.keyboard.press(str(full))
    says(page, f"Column {full} is full.")
    page.keyboard.press(",")
    pages.wait_for_stones(page, len(puzzle["moves"]) - 1)
    page.keyboard.press(walk.wrong()[0])
    pages.wait_for_stones(page, len(puzzle["moves"]))
    assert page.inner_text("#puzzle-rating") == "500?"
    assert {Path(url).name for url in asked} <= {"puzzles.json", "icon.svg"}
    page.click("#puzzle-show")
    says(page, f"The solution is column {walk.right}.")
    assert streak(page) == ("0", "0")
    assert "−" in page.inner_text("#puzzle-rating")
    assert page.evaluate("document.activeElement.id") == "puzzle-next", "the pressed button is gone"
    assert not any("/api/" in url for url in asked)


def expected(moves: str) -> list[str]:
    """What the explorer's buttons say of a position, from the file by Python's own reading."""
    position = rules.from_moves(moves)
    name, is_mirrored = openings.key(position)
    scores, shares, played = BOOK["positions"][name]
    own = ("Red", "Yellow")[len(moves) % 2]
    other = ("Yellow", "Red")[len(moves) % 2]
    is_symmetric = rules.mirror(position) == position
    counts = {8 - column if is_mirrored else column: rest for column, *rest in played}
    lines = []
    for column in range(1, 8):
        place = 7 - column if is_mirrored else column - 1
        score, share = scores[place], shares[place]
        if score is None or (is_symmetric and column > 4):
            continue
        games, chosen, won, drawn = counts.get(column, (0, 0, 0, 0))
        label, share = (f"{column} or {8 - column}", 2 * share) if is_symmetric and column < 4 else (str(column), share)
        result = f"{own if score > 0 else other} wins {in_moves(score, len(moves))}" if score else "draw"
        # JavaScript rounds halves up.
        parts = [int(100 * part / games + 0.5) for part in (won, drawn, games - won - drawn)] if games else None
        ends = f", Red won {parts[0]} percent, drawn {parts[1]}, Yellow won {parts[2]}" if parts else ""
        played_out = f"{games:,} games, {chosen:,} chosen by the search{ends}"
        line = f"Column {label}: {result}; strong players {share} percent; {played_out}"
        lines.append((-score, -share, COLUMNS_FROM_CENTRE.index(column - 1), line))
    return [line for *_, line in sorted(lines)]


def test_the_explorer_lists_pythons_counts_and_classes(page):
    page.click("#tab-openings")
    page.wait_for_selector(".opening")
    for moves in ("", "4", "1", "7", "44", "26", "62", "4453"):
        page.fill("#game-text", moves)
        page.press("#game-text", "Enter")
        listed = page.locator(".opening").evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))")
        assert len(listed) >= 4
        assert listed == expected(moves)


def test_a_file_that_does_not_come_is_told_of(browser, server):
    with pages.open_page(browser, server, ignore=("503",)) as page:
        page.route("**/*.json", lambda route: route.fulfill(status=503, body=""))
        page.click("#tab-puzzles")
        says(page, "The puzzles cannot be loaded.")
        page.keyboard.press("4")
        assert stones(page) == 0
        page.click("#tab-openings")
        says(page, "The openings cannot be loaded.")
        page.unroute("**/*.json")
        page.click("#tab-puzzles")
        says(page, "to move and")
