"""What a person leaves on the page is there again, in headless Chromium: after other tabs, reloads, Back and links, and
after what replaces a running game.
"""

import pytest

from tests import pages

MORE = False


def hash_is(page, expected: str) -> None:
    pages.wait_for(page, "expected => location.hash === expected", expected)


def tab_is(page, name: str) -> None:
    pages.wait_for(page, "id => document.getElementById(id).getAttribute('aria-selected') === 'true'", f"tab-{name}")


def friends(page, moves: str) -> None:
    """Two people play these moves."""
    page.get_by_role("radio", name="A friend", exact=False).first.check()
    for move in moves:
        page.keyboard.press(move)
    hash_is(page, f"#{moves}")


def paste(page, text: str) -> None:
    page.fill("#game-text", text)
    page.press("#game-text", "Enter")
    page.evaluate("document.activeElement.blur()")


def variation(page, server: str) -> None:
    """The variation 3 2 after the first move of the game 4455 is on the board."""
    pages.visit(page, f"{server}?#4455")
    tab_is(page, "analysis")
    for key in ("Home", "ArrowRight", "3", "2"):
        page.keyboard.press(key)
    pages.status_says(page, "Variation, move 2 of 2")


def test_the_analysis_keeps_game_variation_and_address_while_other_tabs_are_open(page, server):
    variation(page, server)
    hash_is(page, "#4455/1/32")
    for tab in ("play", "puzzles", "openings"):
        page.click(f"#tab-{tab}")
        page.click("#tab-analysis")
        pages.status_says(page, "Variation, move 2 of 2")
        hash_is(page, "#4455/1/32")
        assert page.input_value("#game-text") == "4455"
    pages.visit(page)
    pages.status_says(page, "Variation, move 2 of 2")
    page.get_by_role("button", name="Back to the game").click()
    hash_is(page, "#4455")
    assert pages.stones(page) == 1
    page.click("#tab-play")
    page.get_by_role("radio", name="A friend", exact=False).first.check()
    page.keyboard.press("7")  # the game of the analysis is the person's newest
    page.click("#tab-analysis")
    hash_is(page, "#7")


def test_the_openings_keep_their_position_and_their_address(page):
    page.click("#tab-openings")
    page.wait_for_selector(".opening")
    for key in "44":
        page.keyboard.press(key)
    hash_is(page, "#openings/44")
    page.click("#tab-play")
    hash_is(page, "")
    page.click("#tab-openings")
    hash_is(page, "#openings/44")
    assert pages.stones(page) == 2
    pages.visit(page)
    tab_is(page, "openings")
    assert pages.stones(page) == 2
    page.evaluate("location.hash = 'openings/1'")
    pages.wait_for_stones(page, 1)
    page.go_back()
    pages.wait_for_stones(page, 2)


def test_back_leads_through_the_tabs_and_to_the_set_up_but_not_off_the_site(page):
    friends(page, "44")
    page.click("#tab-analysis")
    page.keyboard.press("5")
    hash_is(page, "#445")
    page.click("#tab-puzzles")
    page.wait_for_selector("#puzzle-next:visible")
    page.click("#tab-play")
    page.keyboard.press("6")
    hash_is(page, "#446")
    for tab, address in (("puzzles", "#puzzle"), ("analysis", "#445"), ("play", "#446")):
        page.go_back()
        tab_is(page, tab)
        assert page.evaluate("location.hash").startswith(address), tab
    page.go_back()
    pages.wait_for_stones(page, 0)
    tab_is(page, "play")
    page.get_by_role("button", name="Back to the last game").click()
    hash_is(page, "#446")
    page.go_forward()
    hash_is(page, "#446")


@pytest.mark.parametrize("undo", ["button", "Back"])
@pytest.mark.parametrize("what", ["New game", "Play from here", "paste"])
def test_what_replaces_a_running_game_can_be_undone(page, what, undo):
    friends(page, "4455")
    if what == "New game":
        page.get_by_role("button", name=what).click()
    elif what == "paste":
        paste(page, "1212")
    else:
        page.click("#tab-analysis")
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        page.get_by_role("button", name=what).click()
    hash_is(page, {"New game": "", "paste": "#1212", "Play from here": "#4"}[what])
    tab_is(page, "play")
    if undo == "button":
        page.get_by_role("button", name="Back to the last game").click()
        tab_is(page, "play")
    else:
        page.go_back()
        tab_is(page, "analysis" if what == "Play from here" else "play")
        page.click("#tab-play")
    hash_is(page, "#4455")
    pages.wait_for_stones(page, 4)
    page.keyboard.press("6")
    hash_is(page, "#44556")
    assert page.is_hidden("#undo-new")


def test_the_link_of_a_variation_opens_it_and_links_can_be_pasted(browser, server):
    with pages.open_page(browser, server, permissions=["clipboard-read", "clipboard-write"]) as page:
        variation(page, server)
        page.keyboard.press("ArrowLeft")
        page.get_by_role("button", name="Copy link").click()
        pages.wait_for(page, "document.getElementById('share-note').textContent.includes('this variation is copied')")
        link = page.evaluate("navigator.clipboard.readText()")
        assert link.endswith("#4455/1/32")
        page.click("#tab-play")
        pages.visit(page, link.replace("?", "?other"))
        tab_is(page, "analysis")
        pages.status_says(page, "Variation, move 2 of 2")
        assert page.locator("#variation button").all_inner_texts() == ["3", "2"]
        assert page.input_value("#game-text") == "4455"
        for pasted, tab, address in (
            ("https://example.org/#openings/44", "openings", "#openings/44"),
            ("#44/0/71", "analysis", "#44/0/71"),
        ):
            paste(page, pasted)
            tab_is(page, tab)
            hash_is(page, address)
            assert pages.stones(page) == 2
        page.evaluate("location.hash = '44/1/444444'")
        pages.status_says(page, "The link contains no game. Move 7 falls into column 4, which is full.")
