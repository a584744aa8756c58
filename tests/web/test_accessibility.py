"""The page for people who do not see it, or do not use a mouse. Properties:

- axe finds nothing to complain of in every tab, in an analysis, a shared game, a retry, the daily puzzle and a friend's
  game, with the list of keys open and on the description of the API, in light, dark and forced colours, on desktop and
  phone; every control has a name of its own;
- the Tab key reaches every control once, in order, and never leaves the list of keys; single keys can be turned off.
"""

import pytest

from tests import pages

TABS = ("play", "analysis", "puzzles", "openings")
GAME = "4445332232"
ROLES = ("button", "combobox", "checkbox", "textbox", "link", "tab", "radio", "slider")
LOOKS = {
    "desktop, light": {"color_scheme": "light"},
    "forced colours": {"forced_colors": "active"},
    "phone, dark": {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}, "has_touch": True},
}


@pytest.mark.parametrize("look", LOOKS)
def test_axe_does_not_complain_and_every_control_has_a_name_of_its_own(browser, server, look):
    with pages.open_page(browser, f"{server}#{GAME}", **LOOKS[look]) as page:
        for tab in (*TABS, "idea"):
            page.click(f"#tab-{tab}")
            if tab == "idea":
                pages.wait_for(page, "!document.getElementById('sight-check').disabled")
            if tab == "analysis":
                page.evaluate(f"location.hash = '{GAME}'")
                for kind in ("network", "search", "solver"):
                    page.locator(f"#{kind}-on").check()
                    pages.wait_for(page, f"document.querySelector('#{kind}-strip[data-state=shown]') !== null")
                page.click("#analysis-go")
                page.locator("#analysis-errors button").first.click()
                page.locator("#analysis-line button").first.click()
            assert pages.complaints(page) == [], tab
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), tab
            lines = [line.strip() for line in page.locator("body").aria_snapshot().splitlines()]
            controls = [line for line in lines if line.strip("- ").split(" ")[0] in ROLES]
            assert all('"' in line for line in controls), controls
            assert len(controls) == len(set(controls)) > 15, controls
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("?")
        assert pages.complaints(page) == [], "keys"
        page.keyboard.press("Escape")
        paper = "getComputedStyle(document.body).backgroundColor"
        before = page.evaluate(paper)
        page.get_by_role("button", name="Switch between light and dark").click()
        assert (page.evaluate(paper) != before) == (look != "forced colours")
        pages.visit(page, f"{server}docs")
        assert pages.complaints(page) == [], "docs"


@pytest.mark.parametrize("look", LOOKS)
def test_axe_does_not_complain_of_shared_games_retries_the_daily_puzzle_and_a_friends_game(browser, server, look):
    with pages.open_page(browser, f"{server}?#{GAME}", more=False, **LOOKS[look]) as page:
        page.wait_for_selector("#linked:visible")
        page.click("#analysis-go")
        page.click("#analysis-retry")
        page.keyboard.press(GAME[-1])
        assert pages.complaints(page) == [], "retry"
        page.click("#retry-end")
        page.click("#share-game")
        assert pages.complaints(page) == [], "share"
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.id") == "share-game"
        page.evaluate("location.hash = 'daily'")
        page.click("#puzzle-show")
        page.wait_for_selector("#daily-squares:visible")
        assert pages.complaints(page) == [], "daily"
        page.click("#tab-play")
        page.get_by_role("button", name="A friend by link").click()
        page.wait_for_selector("#friend-box:visible")
        assert page.evaluate("document.activeElement.id") == "friend-send"
        assert pages.complaints(page) == [], "friend"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


FOCUSED = """document.activeElement === document.body ? null :
  [...document.querySelectorAll("*")].indexOf(document.activeElement)"""
REACHABLE = """[...document.querySelectorAll("a[href], button, select, textarea, input, summary, [tabindex='0']")]
.filter(
  (control) => control.checkVisibility({ visibilityProperty: true }) && !control.disabled && control.tabIndex >= 0
    && !control.closest("dialog")
).length"""


@pytest.mark.parametrize("tab", TABS)
def test_the_tab_key_reaches_every_control_once_in_their_order(browser, server, tab):
    with pages.open_page(browser, f"{server}#{GAME}") as page:
        page.click(f"#tab-{tab}")
        if tab in ("puzzles", "openings"):  # their controls come with a file, until then without a heading
            pages.wait_for(page, f"document.querySelector('#panel-{tab} h2').textContent !== ''")
        page.focus(".brand")  # the first there is
        places = []
        while (place := page.evaluate(FOCUSED)) is not None and len(places) < 200:
            places.append(place)
            page.keyboard.press("Tab")
        assert places == sorted(set(places))
        assert len(places) == page.evaluate(REACHABLE) > 10


def test_the_list_of_keys_keeps_the_focus_and_single_keys_can_be_turned_off_for_people_who_speak(page):
    page.focus("#keys-button")
    for _ in range(2):  # open, and close by the button that has the focus
        page.keyboard.press("Enter")
    assert not page.locator("#keys").is_visible()
    page.keyboard.press("Enter")
    for _ in range(4):
        page.keyboard.press("Tab")
        inside = "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
        assert page.evaluate(inside)
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "keys-button"
    pages.start(page, "4")
    page.keyboard.press("?")
    page.click("#keys-on")
    page.keyboard.press("Escape")
    for visit in ("this", "next"):
        for key in "4nu?":
            page.keyboard.press(key)
        assert not page.locator("#keys").is_visible(), visit
        assert page.evaluate("location.hash") == "#4", visit
        pages.visit(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert len(pages.moves_of(page)) == 2
