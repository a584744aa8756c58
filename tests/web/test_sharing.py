"""Sharing and embedding, in headless Chromium: links, pictures and GIFs show the game, and the compact form plays in
another site's frame, which the server has to allow.
"""

import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

from distill.game import encoding, rules
from tests import pages

MORE = False
RED_WINS = "4142434"
PAPER, RED, YELLOW, HOLE = (255, 254, 251), (0xCF, 0x2F, 0x38), (0xFF, 0xC0, 0x2E), (0xDF, 0xE4, 0xF6)


OVERFLOW = "one => [one.scrollWidth - one.clientWidth, one.scrollHeight - one.clientHeight]"


def board_in(picture: np.ndarray, width: int) -> list[list[int]]:
    """The stones in a picture of a board: 1 red, -1 yellow, 0 empty, row 0 on top."""
    scale = width / 1000

    def at(row: int, column: int) -> int:
        y, x = round((120 + 104 * (row + 0.5) + 34) * scale), round((136 + 104 * (column + 0.5)) * scale)
        distance = [np.abs(picture[y, x].astype(int) - colour).sum() for colour in (HOLE, RED, YELLOW)]
        assert min(distance) < 60, (row, column, picture[y, x])
        return (0, 1, -1)[int(np.argmin(distance))]

    return [[at(row, column) for column in range(7)] for row in range(6)]


def board_after(moves: str) -> list[list[int]]:
    """The same by the rules."""
    position = rules.from_moves(moves)
    sign = 1 if len(moves) % 2 == 0 else -1  # boards are those of the side to move
    return (sign * encoding.boards([position.current], [position.mask])[0]).tolist()


def test_a_result_is_shared_as_link_picture_and_gif_of_the_last_eight_moves(browser, server):
    with pages.open_page(browser, server, more=False, permissions=["clipboard-read", "clipboard-write"]) as page:
        pages.reply_with(page, 1, 2, 3)
        for _ in range(4):
            pages.wait_for_turn(page)
            pages.column(page, 4).click()
        pages.status_says(page, "Four in a row.")
        page.locator("#end").get_by_role("button", name="Share").click()
        assert page.inner_text("#sharing-text") == "I beat Casual in 4 moves: your turn"
        page.get_by_role("button", name="Copy link").last.click()
        pages.wait_for(page, "document.getElementById('sharing-note').textContent === 'The link is copied.'")
        assert page.evaluate("navigator.clipboard.readText()") == f"{server}#4142434"
        with page.expect_download() as download:
            page.get_by_role("button", name="Save picture").click()
        assert download.value.suggested_filename == "connect4-4142434.png"
        picture = np.asarray(Image.open(download.value.path()).convert("RGB"))
        assert picture.shape[1] == 1000
        assert board_in(picture, 1000) == board_after(RED_WINS)
        assert (picture[30:90] < 100).all(2).sum() > 2000, "the headline"
        page.keyboard.press("Escape")
        game = "44455534323"
        page.evaluate("moves => (location.hash = moves)", game)
        pages.wait_for_stones(page, len(game))
        page.get_by_role("button", name="Share…").click()
        assert page.inner_text("#sharing-text") == "Connect 4: what would you play as Yellow?"
        with page.expect_download() as download:
            page.get_by_role("button", name="Save GIF").click()
        data = download.value.path().read_bytes()
        assert len(data) < 150_000
        gif = Image.open(io.BytesIO(data))
        assert (gif.size[0], gif.info["loop"]) == (450, 0)
        frames = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(gif)]
        assert [board_in(frame, 450) for frame in frames] == [board_after(game[:length]) for length in range(3, 12)]
        assert np.abs(frames[0][0, 0].astype(int) - PAPER).sum() < 6


def test_a_shared_link_replays_its_game_and_its_position_can_be_played(browser, server):
    with pages.open_page(browser, server, more=False, reduced_motion="no-preference") as page:
        page.clock.install(time=0)
        page.clock.pause_at(1000)
        pages.visit(page, f"{server}?#44455")
        assert pages.stones(page) == 0
        page.clock.run_for(2000)
        assert 0 < pages.stones(page) < 5
        page.clock.run_for(2000)
        assert pages.stones(page) == 5
        pages.status_says(page, "Move 5 of 5")
        assert page.inner_text("#linked-text") == "A shared position: Yellow to move."
        page.get_by_role("button", name="Play this position").click()
        assert page.get_attribute("#tab-play", "aria-selected") == "true"
        assert pages.moves_of(page).startswith("44455")
        pages.visit(page, f"{server}?other#{RED_WINS}")
        page.clock.run_for(8000)
        assert pages.stones(page) == 7
        assert page.inner_text("#linked-text") == "A shared game: Red won in 4 moves."
        page.get_by_role("button", name="Play a game").click()
        pages.status_says(page, "You are Red against Casual")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A page of another site with three frames; its address is to be told to the server."""
    folder = tmp_path_factory.mktemp("site")
    with pages.hosted(folder) as address:
        yield folder, address


def test_another_site_shows_a_board_a_position_and_the_daily_puzzle_where_the_server_allows_it(browser, models, site):
    folder, address = site
    with pages.serving("--models", models, "--allow-frame", address.rstrip("/")) as server:
        frames = ("", "#4455", "#daily")
        (line,) = re.findall("<iframe.+</iframe>", Path("docs/website.md").read_text(encoding="utf-8"))
        lines = [line.replace("https://example.org/?embed#daily", f"{server}?embed{end}") for end in frames]
        (folder / "index.html").write_text("<!doctype html><title>another site</title>" + "".join(lines))
        (folder / "other.html").write_text("<!doctype html><title>front</title>")
        context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        page = context.new_page()
        page.goto(f"{address}other.html")
        page.goto(address)
        play, position, daily = (page.frame_locator("iframe").nth(number) for number in range(3))
        for frame in (play, position, daily):
            frame.locator("html[data-ready]").wait_for()
            assert frame.locator("nav").is_hidden()
            assert frame.get_by_role("tab").count() == 0
            assert frame.locator("html").evaluate(OVERFLOW) == [0, 0]
        play.get_by_role("button", name=re.compile("^Column 4")).click()
        pages.wait_for(page.frames[1], "document.querySelectorAll('#stones use').length === 2")
        play.get_by_role("button", name="New game").click()
        assert play.locator("#stones use").count() == 0
        assert position.locator("#stones use").count() == 4
        position.get_by_role("button", name="One move back").click()
        assert position.locator("#stones use").count() == 3
        position.get_by_role("button", name="Play this position").click()
        assert position.get_by_role("button", name="New game").is_visible()
        assert daily.locator("#status").inner_text().endswith((".", "…"))
        assert daily.get_by_role("button", name="Solution").is_visible()
        assert daily.get_by_role("link").get_attribute("href") == f"{server}#daily"
        assert [line for frame in page.frames[1:] for line in pages.complaints(frame)] == []
        page.go_back()
        assert page.title() == "front", "Back is that of the site around"
        context.close()
