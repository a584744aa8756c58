"""One writer a folder, and folders that are replaced as a whole.

* The lock goes with a killed process, is shared by parts of a run alone, and leaves nothing where nothing was written.
* Who holds it and ends well removes what killed processes left half-written.
* A replacement takes no workplace from one that is alive, and gives back what a killed one had set aside.
"""

from __future__ import annotations

import contextlib
import threading
import time

import pytest
from helpers import held, state

from distill.base import UserError, folders


def test_a_lock_goes_with_a_killed_process_and_is_shared_by_parts_alone(tmp_path):
    with held(tmp_path, "shared"):
        with folders.locked(tmp_path, shared=True):
            pass
        with pytest.raises(UserError, match="another process is writing here"), folders.locked(tmp_path):
            pass
    with held(tmp_path) as process:
        with pytest.raises(UserError, match="another"), folders.locked(tmp_path, shared=True):
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
    halves = [tmp_path / ".manifest.json.x1.partial", tmp_path / "iterations" / "1" / ".metrics.json.x2.partial"]
    anothers = tmp_path / "another" / ".checkpoint.npz.x3.partial"
    for file in (*halves, tmp_path / ".kept", tmp_path / "kept.partial", anothers, tmp_path / "another" / ".lock"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    with folders.locked(tmp_path, shared=True):
        pass  # others may be writing
    with contextlib.suppress(UserError), folders.locked(tmp_path):
        raise UserError("whose folder it is was not known yet")
    assert all(file.exists() for file in halves)
    with folders.locked(tmp_path):
        pass
    assert not any(file.exists() for file in halves)
    assert (tmp_path / ".kept").exists()
    assert anothers.exists()  # in a folder that has a lock of its own
    assert (tmp_path / "kept.partial").exists()


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
