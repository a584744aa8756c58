"""The play view on every screen, in headless Chromium. Properties, at six window sizes and for start, play and end:

- the whole board is in the window beside or above the rest, fills what the window leaves it, and nothing is wider;
- on a phone the result and the button for a rematch are in the window with the board;
- what can be pressed is at least 44 px high and wide where fingers press, and no keys are named where there are none;
- axe finds nothing to complain of, in light, dark and forced colours;
- nothing moves while the page loads, at the start and in a game, however late the players come;
- forced colours keep red and yellow apart, and show whether a switch is on;
- the stones of a finished game stay readable;
- a swipe to the side moves the stone and not the page.
"""

import io

import pytest
from PIL import Image

from tests import pages

SERVER = ("--max-simulations", "1000")
SIZES = {
    "desktop": (1280, 800),
    "phone": (390, 844),
    "phone on its side": (844, 390),
    "small phone": (320, 568),
    "large": (2560, 1440),
    "at 200 %": (640, 400),
}
LOOKS = {
    "desktop": {"color_scheme": "light"},
    "phone": {"color_scheme": "dark"},
    "large": {"color_scheme": "dark"},
    "small phone": {"forced_colors": "active"},
    "at 200 %": {"forced_colors": "active", "color_scheme": "dark"},
}


def screen(size: str) -> dict:
    """The options of a browser with a window of this size; phones have no mouse."""
    return pages.phone(*SIZES[size]) if "phone" in size else {"viewport": pages.phone(*SIZES[size])["viewport"]}


PRESSED = """() => [...document.querySelectorAll("button, select, textarea, summary, a, label:has(input)")]
  .filter((each) => each.checkVisibility() && !each.closest("dialog"))
  .map((each) => [each.id || each.className || each.textContent.trim().slice(0, 20), each.getBoundingClientRect()])
  .filter(([, { width, height }]) => Math.min(width, height) < 43.9)
  .map(([name, { width, height }]) => `${name} ${width}x${height}`)"""


def check(page, size: str) -> None:
    """The properties of every state."""
    width, height = SIZES[size]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    (board,) = pages.check_in_window(page, "#board")
    assert board["width"] >= min(0.93 * width, 0.72 * height)
    if "phone" in size:
        assert page.evaluate(PRESSED) == []
        assert not page.is_visible("#keys-button")
    assert pages.complaints(page) == []


def play_three_moves(page) -> None:
    """A fourth stone in column 4 wins."""
    page.route("**/move", lambda route: route.fulfill(json={"move": 0}))
    for stones in (2, 4, 6):
        pages.column(page, 4).click()
        pages.wait_for_stones(page, stones)


@pytest.mark.parametrize("size", SIZES)
def test_start_play_and_end_fit_the_window(browser, server, size):
    with pages.open_page(browser, server, more=False, **screen(size), **LOOKS.get(size, {})) as page:
        check(page, size)
        play_three_moves(page)
        check(page, size)
        pages.column(page, 4).click()
        pages.status_says(page, "You win!")
        page.mouse.move(0, 0)
        check(page, size)
        faded = page.evaluate(
            "[...document.querySelectorAll('.stone')].map((stone) => Number(getComputedStyle(stone).opacity))"
        )
        assert min(faded) >= 0.7


@pytest.mark.parametrize("size", [(320, 568), (360, 640), (375, 667), (375, 812), (390, 844), (844, 390), (568, 320)])
def test_on_a_phone_the_result_and_a_rematch_are_in_the_window_with_the_board(browser, server, size):
    with pages.open_page(browser, server, more=False, **pages.phone(*size)) as page:
        play_three_moves(page)
        pages.column(page, 4).click()
        pages.status_says(page, "You win! Four in a row.")
        assert page.evaluate("[scrollY, document.documentElement.scrollWidth]") == [0, size[0]]
        pages.check_in_window(page, "#status", "#board", "#rematch", "#to-review", "#end")


SHIFTS = """
  window.shift = 0;
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) window.shift += value;
  }).observe({ type: "layout-shift", buffered: true });
"""


@pytest.mark.parametrize("size", SIZES)
def test_nothing_moves_while_the_page_loads(browser, server, size):
    with pages.open_page(browser, server, more=False, **screen(size)) as page:
        page.add_init_script(SHIFTS)

        def later(route):
            page.wait_for_timeout(300)
            route.continue_()

        page.route("**/players", later)
        page.route("**/main.js", later)
        pages.visit(page)
        page.wait_for_timeout(300)
        assert page.evaluate("shift") < 0.05, "at the start"
        page.get_by_role("radio", name="A friend").check()
        pages.column(page, 4).click()
        pages.visit(page)
        page.wait_for_timeout(300)
        assert pages.stones(page) == 1
        assert page.evaluate("shift") < 0.05, "in a game"


def centre(page, selector: str) -> tuple[int, ...]:
    """The colour in the middle of an element."""
    picture = Image.open(io.BytesIO(page.locator(selector).first.screenshot())).convert("RGB")
    return picture.getpixel((picture.width // 2, picture.height // 2))


def test_forced_colours_keep_red_and_yellow_apart_and_show_switches(browser, server):
    with pages.open_page(browser, server, forced_colors="active") as page:
        red, yellow = centre(page, "#chip-0"), centre(page, "#chip-1")
        assert red[0] > 200 > 100 > red[1], red
        assert min(yellow[:2]) > 150 > yellow[2], yellow
        off = page.locator("#sound-on").screenshot()
        page.check("#sound-on")
        page.evaluate("document.activeElement.blur()")
        assert page.locator("#sound-on").screenshot() != off
        border = "getComputedStyle(document.getElementById('sound-on')).borderTopStyle"
        assert page.evaluate(border) == "solid"


def test_a_swipe_to_the_side_moves_the_stone_and_not_the_page(browser, server):
    with pages.open_page(browser, server, more=False, **screen("phone")) as page:
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
