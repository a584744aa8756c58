"""The page for people who do not see it, or do not use a mouse: axe does not complain of a tab, in light, dark and
forced colours, on desktop and phone; every control has a name of its own, and the Tab key reaches each once.
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
        pages.visit(page, f"{server}docs.html")
        assert pages.complaints(page) == [], "docs"


FOCUSED = """document.activeElement === document.body ? null :
  [...document.querySelectorAll("*")].indexOf(document.activeElement)"""
REACHABLE = """[...document.querySelectorAll("a[href], button, select, textarea, input, summary, [tabindex='0']")]
.filter(
  (control) => control.checkVisibility({ visibilityProperty: true }) && !control.disabled && control.tabIndex >= 0
    && !control.closest("dialog")
).length"""


def test_the_tab_key_reaches_every_control_once_in_their_order(browser, server):
    with pages.open_page(browser, f"{server}#{GAME}") as page:
        for tab in TABS:
            page.click(f"#tab-{tab}")
            if tab in ("puzzles", "openings"):  # their controls come with a file, until then without a heading
                pages.wait_for(page, f"document.querySelector('#panel-{tab} h2').textContent !== ''")
            page.focus(".brand")  # the first there is
            places = []
            while (place := page.evaluate(FOCUSED)) is not None and len(places) < 200:
                places.append(place)
                page.keyboard.press("Tab")
            assert places == sorted(set(places)), tab
            assert len(places) == page.evaluate(REACHABLE) > 10, tab
