"""What the page shows of a game, in headless Chromium. Properties:

- in the analysis policy, value, visits and scores are those of the API, column by column; in "Play" there are none;
- replay steps through the game; a move string in the address is the game, and every move is written there.
"""

from tests import pages

RED_WINS = "4142434"
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
    page.select_option("#search-who", "uct:1000")
    scores = pages.asked(page, server, "solver", "41424")["scores"]
    assert pages.cells_of(page, "solver") == [f"+{s}" if s > 0 else f"−{-s}" if s else "0" for s in scores]
    visits = [0 if text == "<1" else int(text) for text in pages.cells_of(page, "search")]
    assert 95 <= sum(visits) <= 105
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("o")
    assert not page.locator("#solver-strip").is_visible()


def test_replay_steps_through_the_game_and_back(page):
    pages.start(page, "445566")
    page.get_by_role("button", name="One move back").click()
    page.get_by_role("button", name="Replay").click()
    pages.wait_for_stones(page, 6)
    page.get_by_role("button", name="Move 2: yellow, column 4").focus()
    page.keyboard.press("Enter")
    assert pages.stones(page) == 2
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Move 2: yellow, column 4"
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("1")  # another way from here
    assert pages.moves_of(page) == "441"


def test_an_address_is_a_game_and_the_game_is_in_the_address(browser, server):
    with pages.open_page(browser, f"{server}#{RED_WINS}", permissions=["clipboard-read", "clipboard-write"]) as page:
        pages.status_says(page, "Red wins")
        page.get_by_role("button", name="Copy link").click()
        pages.wait_for(page, "document.getElementById('share-note').textContent.includes('copied')")
        assert page.evaluate("navigator.clipboard.readText()") == f"{server}#{RED_WINS}"
        page.evaluate("location.hash = '44'")
        pages.wait_for_stones(page, 2)
        page.evaluate("location.hash = '1111111'")
        pages.status_says(page, "The link contains no game. Move 7 falls into column 1, which is full.")
