"""What the page shows of a game, in headless Chromium: in the analysis the policy, value, visits and scores of the API,
column by column; in "Play" nothing.
"""

from tests import pages

FULL_LEFT = "1111112"


def test_the_networks_policy_and_value_are_shown(page, server):
    pages.start(page, FULL_LEFT)
    assert page.is_hidden("#strips"), "in a game nobody is told what to play"
    page.click("#tab-analysis")
    page.locator("#network-on").check()
    reply = pages.asked(page, server, page.input_value("#network-who"), FULL_LEFT)
    percents = [round(100 * share) for share in reply["policy"]]
    shown = pages.cells_of(page, "network")
    assert [0 if text == "<1" else int(text) for text in shown] == percents
    sign = "+" if reply["value"] > 0 else "−"
    assert f"value {sign}{abs(reply['value']):.2f} for Yellow" in page.inner_text("#network-strip")
    best = page.locator("#network-strip .best").get_attribute("aria-label")
    assert best.startswith(f"column {reply['move'] + 1}:")


def test_the_searchs_and_the_solvers_opinions_are_shown(page, server):
    pages.start(page, "41424", first="person")
    page.click("#tab-analysis")
    assert page.is_checked("#solver-on")
    page.locator("#search-on").check()
    page.select_option("#search-who", search := "reference/pillar@puct:200")
    scores = pages.asked(page, server, "solver", "41424")["scores"]
    assert pages.cells_of(page, "solver") == [f"+{s}" if s > 0 else f"−{-s}" if s else "0" for s in scores]
    visits = [round(100 * share) for share in pages.asked(page, server, search, "41424")["policy"]]
    assert [0 if text == "<1" else int(text) for text in pages.cells_of(page, "search")] == visits
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("o")
    assert not page.locator("#solver-strip").is_visible()
