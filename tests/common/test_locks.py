"""Folders whose files are replaced as a whole: a kill leaves the old version or the new one, and links stay links."""

import contextlib
import functools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import state

from distill.common import files, write_json
from distill.common.storage import storage_of


def names(folder: Path) -> list[str]:
    """What the program wrote in the folders of these tests, the list first."""
    return [name for name in ("list", "model", "stale") if (folder / name).exists()]


def fill(new: Path, **files: str) -> None:
    new.mkdir(exist_ok=True)
    for name, text in files.items():
        (new / name).write_text(text)


def test_a_link_stays_a_link_and_what_it_leads_to_is_replaced(tmp_path):
    served, run = tmp_path / "served", tmp_path / "run"
    fill(served, list="", model="old", stale="old")
    run.mkdir()
    (run / "saved_model").symlink_to(served)
    (run / "later").symlink_to(tmp_path / "not" / "yet")
    (run / "metrics.json").symlink_to(tmp_path / "metrics.json")
    for link in ("saved_model", "later"):
        with files.swapped(run / link, names) as new:
            fill(new, list="", model="new")
    write_json(run / "metrics.json", {"loss": 1})
    assert all((run / link).is_symlink() for link in ("saved_model", "later", "metrics.json"))
    assert state(served) == state(tmp_path / "not" / "yet")
    assert state(served).keys() == {"list", "model"}
    assert (served / "model").read_text() == "new"
    assert (tmp_path / "metrics.json").read_text() == '{\n "loss": 1\n}\n'
    for name in ("metrics.json", "saved_model"):
        storage_of(run).delete(name)
    assert state(served).keys() == {"list", "model"}, "a restart removes the link alone"
    assert (tmp_path / "metrics.json").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"metrics.json", "not", "run", "served"}


def test_new_files_replace_the_programs_own_and_what_others_put_there_stays(tmp_path):
    page = tmp_path / "page"
    fill(page, list="old", stale="old", CNAME="mine", **{"lost+found": "mine"})
    for folder in (page / ".git", page / "model", tmp_path / ".page.new.partial"):  # the last one is a killed process's
        fill(folder, file="old")

    def replace(work: Callable[[Path], None]) -> None:
        with files.swapped(page, names) as new:
            assert state(new) == {}
            work(new)

    before = state(page)
    with pytest.raises(ZeroDivisionError):
        replace(lambda _: 1 / 0)
    assert state(page) == before
    replace(lambda new: fill(new, model="new", list="new"))
    assert state(page).keys() == {".git", ".git/file", "CNAME", "list", "lost+found", "model"}
    assert (page / "model").read_text() == (page / "list").read_text() == "new"
    shutil.rmtree(page)
    with pytest.raises(ZeroDivisionError):
        replace(lambda _: 1 / 0)
    assert not list(tmp_path.iterdir())


def test_a_replacement_that_is_killed_at_any_change_leaves_the_old_version_or_the_new_one(tmp_path, monkeypatch):
    """The process dies at its first change to the disk, or at the second, and so on."""
    for count in range(20):
        page, left = tmp_path / str(count) / "page", count
        fill(page.parent)
        fill(page, list="old", model="old", stale="old", CNAME="mine")
        fill(page / "part", file="mine")

        def change(made: Callable[..., Any], *args: Any, **how: Any) -> Any:
            nonlocal left
            left -= 1
            return made(*args, **how) if left >= 0 else os._exit(9)

        if (process := os.fork()) == 0:
            with files.swapped(page, names) as new:
                fill(new, list="new", model="new")
                for name in ("rename", "replace", "unlink", "rmdir"):
                    monkeypatch.setattr(os, name, functools.partial(change, getattr(os, name)))
            os._exit(0)
        killed = os.waitpid(process, 0)[1] != 0
        with contextlib.suppress(ZeroDivisionError), files.swapped(page, names):  # the next export, which fails
            raise ZeroDivisionError
        old = {"list": "old", "model": "old", "stale": "old", "CNAME": "mine"}
        found = {path.name: path.read_text() for path in page.iterdir() if path.is_file()}
        assert found in (old, {"list": "new", "model": "new", "CNAME": "mine"})
        assert (page / "part" / "file").read_text() == "mine"
        assert [path.name for path in page.parent.iterdir()] == ["page"]
        if not killed:
            break
    assert 4 < count < 19
