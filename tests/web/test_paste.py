"""Games pasted into the page's field, in headless Chromium: every usual notation is read, of other texts the first
thing that cannot be read is named, and nothing changes before Enter or "Load".
"""

import pytest

from tests import pages

READ = """async (texts) => {
  const { read } = await import("./paste.js");
  return texts.map((text) => {
    try {
      return read(text);
    } catch (error) {
      return error.message;
    }
  });
}"""
EMPTY_ROWS = "0" * 35
KNOWN = {
    "": {"moves": ""},
    "4453": {"moves": "4453"},
    " 4 4\n5 3 ": {"moves": "4453"},
    "[4, 4, 5, 3]": {"moves": "4453"},
    "1.4.4.5": {"moves": "1445"},
    "1. 4 4 2. 5 3": {"moves": "4453"},
    "1.44 2.53 3.": {"moves": "4453"},
    "1. 4 2. 4 3. 5 4. 3": {"moves": "4453"},
    "1. 4 1... 4 2. 5 2... 3": {"moves": "4453"},
    "Game: 1. 4!! 4!? 2. 5?! 3?": {"moves": "4453"},
    "{first} 4 4 {5 is bad} 5 3": {"moves": "4453"},
    "ddec": {"moves": "4453"},
    "Moves: 1) D D! 2) E C": {"moves": "4453"},
    "https://example.org/game/#4453": {"moves": "4453"},
    "http://127.0.0.1:8000/#puzzle/k3x9q": {"puzzle": "k3x9q"},
    "3340": {"zeroBased": "4451"},
    "0" * 42: {"moves": ""},
    EMPTY_ROWS + "0001000": {"moves": "4"},
    "{'remainingOverageTime': 60, 'step': 1, 'board': [" + ", ".join(EMPTY_ROWS + "0001000") + "], 'mark': 2}": {
        "moves": "4"
    },
}
UNREADABLE = {
    "4489": "Cannot read “8”: move 3 is not a column from 1 to 7.",
    "hello": "Cannot read “h”: move 1 is not a column from a to g.",
    "1. 4 4 3. 5": "Cannot read “3.” as the number of move 3.",
    "4 4 (5 3)": "Cannot read “3)” as the number of move 5.",
    "4 (4": "Cannot read “(”: move 2 is not a column from 1 to 7.",
    "4 " * 5001: "The text has 10,002 characters; a game has at most 42 moves.",
    "4444444": "Move 7 falls into column 4, which is full.",
    "12121212": "Move 8 comes after the end of the game.",
    "https://example.org/game": "This link has no game after a “#”.",
    "0" * 41: "This board has 41 cells, not 42.",
    "board: [0, 3]": "Cannot read “3”: cell 2 of the board is not 0, 1 or 2.",
    "0" * 31 + "10000000000": "The stone in row 5 from the top, column 4, has an empty cell below it.",
    EMPTY_ROWS + "0020000": "This board has 0 stones of 1 and 1 of 2; 1 moves first.",
}


@pytest.fixture(scope="module")
def read(browser, server):
    with pages.open_page(browser, server) as page:
        yield lambda texts: page.evaluate(READ, texts)


def test_every_usual_notation_is_read_and_the_first_thing_that_cannot_be_read_is_named(read):
    cases = KNOWN | UNREADABLE
    assert dict(zip(cases, read(list(cases)), strict=True)) == cases


def enter(page, text: str) -> None:
    page.fill("#game-text", text)
    page.press("#game-text", "Enter")


def test_text_waits_in_the_field_until_it_is_loaded(page):
    page.click("#game-text")
    page.keyboard.insert_text("1. 4 4\n2. 5 3\n")  # the lines of a pasted text stay apart
    page.keyboard.press("Enter")
    assert pages.moves_of(page) == "4453"
    pages.start(page, "44")
    page.fill("#game-text", "1. 4 4 2. 5")
    page.focus("#copy")
    assert pages.moves_of(page) == "44"
    assert page.input_value("#game-text") == "1. 4 4 2. 5"
    page.get_by_role("button", name="Load", exact=True).click()
    assert pages.moves_of(page) == page.input_value("#game-text") == "445"
    assert page.get_by_role("button", name="Load", exact=True).is_hidden()


def test_an_unreadable_text_changes_nothing_and_columns_from_0_are_asked_about(page):
    pages.start(page, "44")
    enter(page, "4x5")
    assert page.inner_text("#share-note") == "Cannot read “x”: move 2 is not a column from 1 to 7."
    assert page.get_attribute("#game-text", "aria-invalid") == "true"
    assert pages.moves_of(page) == "44"
    enter(page, "3 0 6")
    assert "counted from 0 to 6?" in page.inner_text("#share-note")
    assert pages.moves_of(page) == "44"
    page.get_by_role("button", name="Yes, load it").click()
    assert pages.moves_of(page) == "417"
    assert page.inner_text("#share-note") == ""
