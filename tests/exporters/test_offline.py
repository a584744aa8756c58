"""The page without a server, without a connection and opened as a file, in headless Chromium: once loaded it plays on
after the host has gone, and a newer site replaces the older one.
"""

import gzip
import json
import shutil

import pytest

from distill.exporters import static_page
from tests import pages

KEPT = """async () => {
  await navigator.serviceWorker.ready;
  const kept = {};
  for (const name of await caches.keys()) {
    const files = await (await caches.open(name)).keys();
    kept[name] = files.map(({ url }) => decodeURIComponent(new URL(url).pathname)).sort();
  }
  return kept;
}"""
PLAY = "async (player) => (await import('./network.js')).choose(player, '44')"
STATUS = "(name) => fetch(name, { cache: 'no-store' }).then(({ status }) => status)"
LARGE = "pillar-large.onnx"


def files_of(folder, *without):
    """As the service worker keeps them: the page itself under the folder's address."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return sorted(
        f"/below/site/{name if name != 'index.html' else ''}"
        for name in names
        if name not in ("sw.js", "_run.json", ".lock", *without)
    )


def test_it_plays_on_after_the_host_has_gone(browser, site):
    root = site.parents[1]
    page = browser.new_page()
    page.set_default_timeout(1000 * pages.PATIENCE)
    failed = []
    page.on("pageerror", lambda error: failed.append(str(error)))
    with pages.hosted(root) as address:
        pages.visit(page, f"{address}below/site/")
        assert list(page.evaluate(KEPT).values()) == [files_of(site, LARGE)]
        pages.visit(page)  # under the worker, which was installed after the page
        quota = {"origin": address[:-1], "quotaSize": 1}
        page.context.new_cdp_session(page).send("Storage.overrideQuotaForOrigin", quota)
        assert page.evaluate(PLAY, "pillar-large") in range(7), "a full disk takes no download"
        assert list(page.evaluate(KEPT).values()) == [files_of(site, LARGE)]
        page.context.new_cdp_session(page).send("Storage.overrideQuotaForOrigin", {"origin": address[:-1]})
        pages.visit(page)
        assert page.evaluate(PLAY, "pillar-large") in range(7)
        assert list(page.evaluate(KEPT).values()) == [files_of(site)]
    pages.visit(page, f"{address}below/site/?again")
    for player in (*pages.site_networks(), "pillar@puct:16", "uct:50"):
        assert page.evaluate(PLAY, player) in range(7)
    page.check("#more-players")
    page.select_option("#player-1", "pillar@puct:16")
    page.get_by_role("button", name="Column 1").click()
    pages.wait_for(page, "location.hash.length === 3")
    pages.visit(page, f"{address}below/site/index.html")
    assert failed == []
    page.close()


def test_a_newer_site_replaces_the_older_one_once_no_page_of_that_is_open(browser, site, tmp_path):
    folder = tmp_path / "below" / "site"
    shutil.copytree(site, folder, ignore=shutil.ignore_patterns(".lock", "_run.json"))
    page = browser.new_page()
    page.set_default_timeout(1000 * pages.PATIENCE)
    with pages.hosted(tmp_path) as address:
        page.goto(f"{address}below/site/")
        page.evaluate("caches.open('another site of this host')")
        [first] = set(page.evaluate(KEPT)) - {"another site of this host"}
        shutil.copy(static_page.SITE / "sw.js", folder)
        (folder / (removed := f"{pages.site_networks()[1]}.onnx")).unlink()
        static_page._list_files(folder, later=[LARGE])
        (tmp_path / "other.html").touch()
        page.reload()
        pages.wait_for(page, "() => navigator.serviceWorker.getRegistration().then(({ waiting }) => Boolean(waiting))")
        assert page.evaluate(STATUS, removed) == 200, "an open page keeps its files"
        assert page.evaluate(STATUS, LARGE) == 503, "and gets none of the newer site"
        page.goto(f"{address}other.html")
        pages.wait_for(page, "(first) => caches.keys().then((names) => !names.includes(first))", first)
        page.goto(f"{address}below/site/")
        kept = page.evaluate(KEPT)
    assert len(kept) == 2
    assert kept.pop("another site of this host") == []
    assert list(kept.values()) == [files_of(folder, LARGE)]
    page.close()


def test_it_is_small_enough_to_send_and_can_be_installed(site):
    files = [path for path in site.rglob("*") if path.is_file() and path.name != LARGE]
    sent = sum(len(gzip.compress(path.read_bytes())) for path in files)
    assert sent < 6_000_000
    manifest = json.loads((site / "site.webmanifest").read_text())
    assert '<link rel="manifest" href="site.webmanifest">' in (site / "index.html").read_text()
    assert manifest["start_url"] == manifest["scope"] == "./"
    assert all((site / icon["src"]).is_file() for icon in manifest["icons"])


@pytest.mark.parametrize(
    ("is_site", "advice"), [(True, "run python -m http.server in its folder"), (False, "run python -m distill.serve")]
)
def test_opened_as_a_file_it_says_what_to_do(browser, site, is_site, advice):
    page = browser.new_page()
    page.goto(((site if is_site else static_page.PAGE) / "index.html").as_uri())
    assert advice in page.inner_text("main")
    assert page.locator("main button, nav button").count() == 0  # nothing that would do nothing
    page.close()
