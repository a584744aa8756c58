"""The play view at five window sizes, in headless Chromium: at the start, in play and at the end the whole board is in
the window, on a phone what can be pressed is at least 44 px high and wide, axe does not complain, and a swipe moves the
stone and not the page.
"""

import pytest

from tests import pages

MORE = False
DARK, FORCED = {"color_scheme": "dark"}, {"forced_colors": "active"}
DESKTOPS = {(1280, 800): {}, (640, 400): FORCED | DARK}
"""Sizes with the colours that are asked for; the last is at 200 %."""
PHONES = {(390, 844): DARK, (844, 390): {}, (320, 568): FORCED}


def screen(size: tuple[int, int]) -> dict:
    """The options of a browser with a window of this size; phones have no mouse."""
    return pages.phone(*size) | PHONES[size] if size in PHONES else {"viewport": pages.phone(*size)["viewport"]}


PRESSED = """() => [...document.querySelectorAll("button, select, textarea, summary, a, label:has(input)")]
  .filter((each) => each.checkVisibility() && !each.closest("dialog"))
  .map((each) => [each.id || each.className || each.textContent.trim().slice(0, 20), each.getBoundingClientRect()])
  .filter(([, { width, height }]) => Math.min(width, height) < 43.9)
  .map(([name, { width, height }]) => `${name} ${width}x${height}`)"""
OPACITIES = "[...document.querySelectorAll('.stone')].map((stone) => Number(getComputedStyle(stone).opacity))"


def check(page, size: tuple[int, int]) -> None:
    """The properties of every state."""
    width, height = size
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    (board,) = pages.check_in_window(page, "#board")
    assert board["width"] >= min(0.93 * width, 0.72 * height)
    if size in PHONES:
        assert page.evaluate(PRESSED) == []
        assert not page.is_visible("#keys-button")


@pytest.mark.parametrize("size", [*DESKTOPS, *PHONES], ids=str)
def test_start_play_and_end_fit_the_window(browser, server, size):
    with pages.open_page(browser, server, more=MORE, **screen(size) | DESKTOPS.get(size, {})) as page:
        check(page, size)
        pages.reply_with(page, 1, 1, 1)
        for stones in (2, 4, 6):
            pages.column(page, 4).click()
            pages.wait_for_stones(page, stones)
        check(page, size)
        pages.column(page, 4).click()
        pages.status_says(page, "You won in 7 moves. Four in a row.")
        page.mouse.move(0, 0)
        check(page, size)
        assert pages.complaints(page) == []
        assert min(page.evaluate(OPACITIES)) >= 0.7
        if size in PHONES:
            assert page.evaluate("scrollY") == 0
            pages.check_in_window(page, "#status", "#board", "#rematch", "#to-review", "#end")


def test_a_swipe_to_the_side_moves_the_stone_and_not_the_page(browser, server):
    with pages.open_page(browser, server, more=MORE, **screen((390, 844))) as page:
        page.get_by_role("radio", name="A friend").check()
        page.evaluate("scrollTo(0, 0)")
        touch = page.context.new_cdp_session(page)
        start, end = (pages.column(page, number).bounding_box() for number in (1, 5))
        y = start["y"] + start["height"] / 2
        where = [start["x"] + 20 + (end["x"] - start["x"]) * step / 8 for step in range(9)]
        for kind, x in (("touchStart", where[0]), *(("touchMove", x) for x in where[1:]), ("touchEnd", None)):
            points = [] if x is None else [{"x": x, "y": y}]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        pages.wait_for_stones(page, 1)
        assert pages.moves_of(page) == "5"
        assert page.evaluate("[scrollX, scrollY]") == [0, 0]
