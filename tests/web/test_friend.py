"""A game with a friend by link, in headless Chromium: in a room both pages are updated at once; without rooms the link
has the moves, and whoever opens it is to move.
"""

import pytest

from tests import pages

MORE = False


@pytest.fixture
def friend(browser, server):
    with pages.open_page(browser, server, more=False) as opened:
        yield opened


def invite(page) -> str:
    """Open a room; returns its link."""
    page.get_by_role("button", name="A friend by link").click()
    pages.wait_for(page, "location.hash !== ''")
    return page.evaluate("location.href")


def test_two_pages_play_in_a_room_and_are_updated_at_once(page, friend):
    link = invite(page)
    assert "#room/" in link
    assert "not here" in page.inner_text("#friend-text")
    pages.visit(friend, link.replace("#", "?#"))
    pages.status_says(friend, "Your friend is to move.")
    pages.wait_for(page, "document.getElementById('friend-text').textContent.includes('Your friend is here')")
    pages.column(page, 4).click()
    pages.status_says(friend, "Your friend played column 4. Your turn (Yellow)")
    pages.column(page, 1).click(force=True)
    pages.status_says(page, "Your friend is to move.")
    assert pages.stones(page) == 1, "it is not this person's turn"
    for name in ("Hint", "Take back", "Resign"):
        assert friend.get_by_role("button", name=name).count() == 0
    pages.column(friend, 1).click()
    pages.wait_for_stones(page, 2)
    friend.click("#tab-analysis")
    pages.column(page, 4).click()
    friend.click("#tab-play")
    pages.wait_for_stones(friend, 3)
    pages.visit(friend)
    pages.wait_for_stones(friend, 3)
    for who, column, other in ((friend, 1, page), (page, 4, friend), (friend, 1, page), (page, 4, friend)):
        number = pages.stones(who) + 1
        pages.column(who, column).click()
        pages.wait_for_stones(other, number)
    pages.status_says(page, "You won in ")
    pages.status_says(friend, "You lost")
    friend.get_by_role("button", name="Rematch").click()
    pages.status_says(friend, "Your turn (Red)")
    pages.wait_for_stones(page, 0)
    pages.status_says(page, "Your friend is to move.")
    assert page.evaluate("localStorage['distill-scores']") is None


def test_a_move_that_the_server_does_not_take_is_kept_and_sent_again(browser, server):
    def refuse(route) -> None:
        if route.request.method == "POST":
            route.fulfill(status=503, body="{}")
        else:
            route.continue_()

    with pages.open_page(browser, server, more=False, ignore=("503",)) as page:
        invite(page)
        page.route("**/api/v1/rooms/*", refuse)
        pages.column(page, 4).click()
        pages.status_says(page, "The connection is lost; trying again…")
        pages.visit(page)
        pages.wait_for_stones(page, 1)
        page.unroute("**/api/v1/rooms/*")
        pages.status_says(page, "Your friend is to move")


def test_new_game_leaves_the_room_and_the_game_can_be_brought_back(page, friend):
    link = invite(page)
    pages.visit(friend, link.replace("#", "?#"))
    pages.column(page, 4).click()
    pages.wait_for_stones(friend, 1)
    page.get_by_role("button", name="New game").click()
    pages.status_says(friend, "Your turn (Yellow)")
    assert page.get_by_role("radio", name="Casual").is_checked()
    assert page.evaluate("location.hash") == ""
    pages.column(friend, 4).click()
    page.get_by_role("button", name="Back to the last game").click()
    pages.wait_for_stones(page, 2)
    assert page.evaluate("location.href") == link
    for _ in range(2):  # through the same game, as it was before New game, to the set-up
        page.go_back()
    pages.wait_for_stones(page, 0)
    assert page.get_by_role("radio", name="Casual").is_checked()


def test_a_game_whose_room_has_expired_goes_on_by_links(browser, server):
    with pages.open_page(browser, server, more=False, ignore=("404",)) as page:
        invite(page)
        pages.column(page, 4).click()
        for key in "sph":
            page.keyboard.press(key)
        pages.status_says(page, "Your friend is to move, but not here")
        page.route("**/api/v1/rooms/*", lambda route: route.fulfill(status=404, json={"error": "expired"}))
        pages.visit(page)
        pages.wait_for(page, "location.hash === '#friend/4'")
        pages.status_says(page, "Send the link to your friend")


def test_without_rooms_the_link_has_the_moves_and_goes_to_and_fro(browser, server):
    options = {"permissions": ["clipboard-read", "clipboard-write"], "more": False, "ignore": ("503", "404")}
    with pages.open_page(browser, server, **options) as page, pages.open_page(browser, server, **options) as friend:
        page.route("**/api/v1/rooms", lambda route: route.fulfill(status=503, json={"error": "no rooms"}))
        invite(page)
        assert page.evaluate("location.hash") == "#friend/"
        pages.column(page, 4).click()
        pages.status_says(page, "Send the link to your friend")
        page.get_by_role("button", name="Take back").click()
        pages.column(page, 3).click()
        page.get_by_role("button", name="Copy link for your friend").click()
        pages.wait_for(page, "document.getElementById('friend-note').textContent === 'The link is copied.'")
        link = page.evaluate("navigator.clipboard.readText()")
        assert link.endswith("#friend/3")
        pages.visit(page)  # it is still the other's turn
        pages.status_says(page, "Send the link to your friend")
        pages.visit(friend, link.replace("#", "?#"))
        pages.status_says(friend, "Your friend played column 3. Your turn (Yellow)")
        pages.column(friend, 3).click()
        page.fill("#game-text", friend.evaluate("location.href"))
        page.press("#game-text", "Enter")
        pages.status_says(page, "Your friend played column 3. Your turn (Red)")
        assert page.is_hidden("#undo-new"), "the same game goes on"
        page.evaluate("location.hash = 'room/nowhere'")
        pages.status_says(page, "This game has expired, or its link is incomplete.")
