"""One writer a folder, and folders that are replaced as a whole.

* The lock goes with a killed process, and leaves nothing where nothing was written.
* Who holds it and ends well removes what killed processes left half-written.
* A replacement takes no workplace from one that is alive, and gives back what a killed one had set aside.
* A link to a file or folder that is replaced stays a link, and what it leads to is new.
* What a replaced folder held beside the program's own files stays; a mounted volume is refused.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import held, state

from distill.common import UserError, folders, write_json


def test_a_lock_goes_with_a_killed_process(tmp_path):
    with held(tmp_path) as process:
        with pytest.raises(UserError, match="another process is writing here"), folders.locked(tmp_path):
            pass
        process.kill()
        process.wait()
        with folders.locked(tmp_path):
            pass


def test_a_failure_leaves_no_lock_where_there_was_none(tmp_path):
    with pytest.raises(UserError), folders.locked(tmp_path / "new" / "and" / "deep"):
        raise UserError("wrong")
    assert not (tmp_path / "new").exists()
    with folders.locked(tmp_path / "old"):
        pass
    with pytest.raises(UserError), folders.locked(tmp_path / "old"):
        raise UserError("wrong")
    assert state(tmp_path / "old").keys() == {".lock"}
    with folders.locked(tmp_path / "page", beside=True):
        (tmp_path / "page").mkdir()
    assert state(tmp_path).keys() == {"old", "old/.lock", "page"}
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is a file"), folders.locked(tmp_path / "file"):
        pass


def test_what_a_killed_process_left_half_written_goes_with_the_next_writer_that_ends_well(tmp_path):
    half = tmp_path / ".manifest.json.x1_a5678.partial"
    others = [tmp_path / name for name in (".film.mkv.partial", ".kept", "kept.partial")]
    for file in (half, *others):
        file.touch()
    with contextlib.suppress(UserError), folders.locked(tmp_path):
        raise UserError("whose folder it is was not known yet")
    assert half.exists()
    with folders.locked(tmp_path):
        pass
    assert not half.exists()
    assert all(file.exists() for file in others)  # of other programs: it may be a home


def test_who_waited_for_a_lock_file_that_was_removed_locks_the_new_one(tmp_path):
    """Two would hold one folder if the waiting one were content with the file that is gone."""
    out, order = tmp_path / "out", list[str]()

    def second() -> None:
        with folders.locked(out, wait=True):
            order.append("second")
            with pytest.raises(UserError), folders.locked(out):
                pass

    def fail() -> None:
        waiting.start()
        time.sleep(0.3)
        order.append("first")
        raise UserError("wrong")

    waiting = threading.Thread(target=second)
    with pytest.raises(UserError, match="wrong"), folders.locked(out):
        fail()
    waiting.join(20)
    assert order == ["first", "second"]
    assert state(out).keys() == {".lock"}


def test_a_swap_that_was_cut_off_gives_back_what_stood_there(tmp_path):
    page = tmp_path / "page"
    workplaces = [tmp_path / ".page.1.partial", tmp_path / ".page.2.partial"]
    for workplace in workplaces:
        (workplace / "new").mkdir(parents=True)
    (workplaces[1] / "old").mkdir()
    (workplaces[1] / "old" / "index.html").write_text("old")
    (tmp_path / ".page.mine").mkdir()
    folders.sweep(page)
    assert state(tmp_path).keys() == {".page.mine", "page", "page/index.html"}


def test_a_folder_is_replaced_as_a_whole_or_not_at_all(tmp_path):
    page = tmp_path / "page"
    for text in ("old", "new"):
        with folders.replaced(page) as new:
            new.mkdir()
            (new / text).touch()
            (new.parent / "on the way").touch()
    assert state(tmp_path).keys() == {"page", "page/new"}

    def fail() -> None:
        with folders.replaced(page) as new:
            new.mkdir()
            raise UserError("wrong")

    with pytest.raises(UserError):
        fail()
    assert state(tmp_path).keys() == {"page", "page/new"}
    with pytest.raises(FileNotFoundError), folders.replaced(page):
        pass  # nothing was made
    assert state(tmp_path).keys() == {"page", "page/new"}


def fill(new: Path, **files: str) -> None:
    new.mkdir()
    for name, text in files.items():
        (new / name).write_text(text)


def test_a_link_stays_a_link_and_what_it_leads_to_is_replaced(tmp_path):
    served, run = tmp_path / "served", tmp_path / "run"
    fill(served, model="old", stale="old")
    run.mkdir()
    (run / "saved_model").symlink_to(served)
    (run / "later").symlink_to(tmp_path / "not" / "yet")
    (run / "metrics.json").symlink_to(tmp_path / "metrics.json")
    with folders.locked(run / "later"):  # an --out may lead to what is not there yet
        assert (tmp_path / "not" / "yet" / ".lock").exists()
    (tmp_path / "not" / "yet" / ".lock").unlink()
    (tmp_path / "not" / "yet").rmdir()
    for link in ("saved_model", "later"):
        with folders.replaced(run / link) as new:
            fill(new, model="new")
    write_json(run / "metrics.json", {"loss": 1})
    assert all((run / link).is_symlink() for link in ("saved_model", "later", "metrics.json"))
    assert state(served) == state(tmp_path / "not" / "yet")
    assert state(served).keys() == {"model"}
    assert (served / "model").read_text() == "new"
    assert (tmp_path / "metrics.json").read_text() == '{\n "loss": 1\n}\n'
    folders.clear(run, ["metrics.json", "saved_model"])
    assert state(served).keys() == {"model"}, "a restart removes the link alone"
    assert (tmp_path / "metrics.json").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"metrics.json", "not", "run", "served"}


def test_what_others_put_into_a_folder_outlives_its_replacement(tmp_path):
    page = tmp_path / "page"
    fill(page, index="old", CNAME="mine", stale="old", **{"lost+found": "mine"})
    fill(page / ".git", HEAD="mine")
    own = lambda folder: ["index", "stale"]  # noqa: E731
    with folders.replaced(page, own) as new:
        fill(new, index="new")
    expected = {".git", ".git/HEAD", "CNAME", "index", "lost+found"}
    assert state(page).keys() == expected
    # the same where the process was killed after the second renaming
    (tmp_path / ".page.12345678.partial").mkdir()
    page.rename(tmp_path / ".page.12345678.partial" / "old")
    fill(page, index="newest")
    folders.sweep(page, own)
    assert state(page).keys() == expected
    assert (page / "index").read_text() == "newest"
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


@contextlib.contextmanager
def mounted(folder: Path, *how: str | Path) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    if os.name != "posix" or os.geteuid() or subprocess.run(["mount", *how, folder], capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("how", [("-t", "tmpfs", "none"), ("--bind", "source")])
def test_a_mounted_volume_is_refused_in_one_line_and_keeps_its_content(tmp_path, monkeypatch, how):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "source").mkdir()
    place = tmp_path / "saved_model"
    with mounted(place, *how):
        (place / "kept").touch()
        with pytest.raises(UserError, match="saved_model: a mounted volume"), folders.replaced(place) as new:
            fill(new, model="new")
        with pytest.raises(UserError, match="saved_model: a mounted volume"):
            folders.clear(tmp_path, ["saved_model"])
        with folders.replaced(place / "inside") as new:  # the root of a volume may hold it
            fill(new, model="new")
        assert state(place).keys() == {"kept", "inside", "inside/model"}


def test_a_folder_of_a_container_image_is_replaced(tmp_path):
    lower, upper, work, merged = (tmp_path / name for name in ("lower", "upper", "work", "merged"))
    for folder in (lower / "saved_model", upper, work):
        folder.mkdir(parents=True)
    (lower / "saved_model" / "model").write_text("old")
    overlay = f"lowerdir={lower},upperdir={upper},workdir={work},redirect_dir=off"
    with mounted(merged, "-t", "overlay", "-o", overlay, "overlay"):
        with folders.replaced(merged / "saved_model") as new:
            fill(new, model="new")
        assert (merged / "saved_model" / "model").read_text() == "new"
        assert [path.name for path in merged.iterdir()] == ["saved_model"]
        shutil.rmtree(merged / "saved_model")
