"""The record of a folder (`common/run_folder.py`). Properties (with commands: `test_restart`):

- another kind, another identity or files that no run recorded are refused in one line, and nothing changes;
- --restart deletes only files that the record lists, never by a pattern, also when it is killed half-way;
- a result completes a run, and starting or extending the run again removes it; a run that was begun resumes;
- a record that cannot be written leaves the old one; a damaged one, or one that leads out of its folder, is refused;
- a second writer is refused, or waits; a killed writer's lock goes with it; readers need no lock;
- a folder's files are replaced together: a failure leaves the old ones, a kill a folder that the next call completes;
- a link to a folder or a file stays a link.
"""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import portalocker
import pytest
from helpers import change_record, held, no_file_larger_than, state

from distill.common import DataError, UserError, provenance, run_folder, write_json
from distill.common.storage import storage_of

IDENTITY: dict[str, Any] = {"seed": 1, "search": {"votes": 3}}


@contextlib.contextmanager
def run(place: Any, files: tuple[str, ...] = ("model",), **more: Any) -> Iterator[run_folder.Run]:
    known = {"kind": "test run", "identity": IDENTITY, "settings": {}} | more
    with run_folder.opened(place, known.pop("kind"), known.pop("identity"), files=files, **known) as folder:
        yield folder


def finish(place: Path, *files: str, **more: Any) -> None:
    """A finished run with these files."""
    with run(place, files, **more) as folder:
        folder.begin()
        for name in files:
            (place / name).write_text("ours")
        folder.finish({"loss": 1})


def refused(place: Path, message: str, **more: Any) -> None:
    before = state(place)
    with pytest.raises(UserError, match=message), run(place, **more):
        pass
    assert state(place) == before


def test_another_kind_another_identity_and_files_of_others_are_refused(tmp_path):
    finish(tmp_path / "run", "model")
    for restart in (False, True):
        refused(tmp_path / "run", "holds test run, not games; name another folder", kind="games", restart=restart)
    line = "code None there, ab here, search.votes 3 there, 5 here, seed 1 there, 2 here"
    refused(tmp_path / "run", line, identity={"seed": 2, "search": {"votes": 5}, "code": "ab"})
    (tmp_path / "mine").mkdir()
    for name in ("model", "notes"):
        (tmp_path / "mine" / name).write_text("mine")
    refused(tmp_path / "mine", r"holds files that no run recorded \(model\)", restart=True)
    finish(tmp_path / "mine", "other")  # other names are in nobody's way
    refused(tmp_path / "mine", r"holds files that no run recorded \(model\)")


def test_a_result_completes_a_run_and_the_next_begin_removes_it(tmp_path):
    finish(tmp_path, "model")
    with run(tmp_path) as folder:
        assert folder.result == {"loss": 1}
        assert run_folder.finished(tmp_path, "games", "test run").commit == provenance.commit()
        folder.begin()
        assert (folder.result, run_folder.result_of(tmp_path)) == (None, {})
    with run(tmp_path) as folder:
        assert (folder.starts, folder.result) == (False, None), "it resumes"
    assert (tmp_path / "model").exists()  # begun, but not restarted
    with pytest.raises(DataError, match="the run is not finished"):
        run_folder.finished(tmp_path, "test run")
    with pytest.raises(DataError, match="holds test run, not games"):
        run_folder.finished(tmp_path, "games")
    with pytest.raises(DataError, match=r"no _run\.json, so no run of distill was finished here"):
        run_folder.finished(tmp_path / "model", "games")


def test_a_restart_deletes_what_the_record_lists_and_nothing_else(tmp_path):
    out, mine = tmp_path / "out", tmp_path / "mine"
    finish(out, "shard-00000.parquet", "link")
    with run(out, ("folder",)) as folder:
        folder.begin()
    for file in (out / "folder" / "deep" / "file", out / "shard-00001.parquet", mine / "file"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    (out / "link").unlink()
    (out / "link").symlink_to(mine)
    with run(out, restart=True, identity={"seed": 2}) as folder:
        assert (out / "shard-00000.parquet").exists()
        folder.begin()
    assert state(out).keys() == {".lock", "_run.json", "shard-00001.parquet"}
    assert (mine / "file").exists(), "a link is deleted, not what it leads to"
    record = run_folder.read(out)
    assert record
    assert (record.identity, record.files) == ({"seed": 2}, ["model"])


def test_a_restart_that_is_killed_half_way_is_completed_by_any_later_run(tmp_path, monkeypatch):
    finish(tmp_path, "first", "second")
    with monkeypatch.context() as patch:
        patch.setattr(run_folder.Folder, "delete", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt), run(tmp_path, restart=True, identity={"seed": 2}) as folder:
            folder.begin()
    with pytest.raises(DataError, match="not finished"):
        run_folder.finished(tmp_path, "test run")
    with run(tmp_path, identity={"seed": 3}) as folder:
        assert folder.starts
        folder.begin()
    assert state(tmp_path).keys() == {".lock", "_run.json"}


def test_a_record_that_cannot_be_written_leaves_the_old_one(tmp_path):
    with run(tmp_path) as folder:
        folder.begin()
    before = state(tmp_path)
    with no_file_larger_than(100), pytest.raises(OSError, match="File too large"), run(tmp_path) as folder:
        folder.finish({"loss": 1})
    assert state(tmp_path) == before


@pytest.mark.parametrize("content", ["", "{", "[]", '{"kind": "test run"}', b"\xff\xfe", "[" * 10_000])
def test_a_damaged_record_is_refused(content, tmp_path):
    (tmp_path / "_run.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(tmp_path, r"_run\.json: damaged", restart=True)


@pytest.mark.parametrize("name", ["../mine", "..", ".", "", "/mine", "deep/file", 7])
def test_a_record_that_names_a_path_outside_of_its_folder_is_refused(name, tmp_path):
    finish(tmp_path, "model")
    change_record(tmp_path, lambda record: record["files"].append(name))
    refused(tmp_path, r"_run\.json: damaged", restart=True)


def test_a_link_to_a_folder_stays_a_link_also_where_the_folder_is_not_there_yet(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "not" / "yet")
    finish(tmp_path / "link", "model")
    assert (tmp_path / "link").is_symlink()
    assert state(tmp_path / "not" / "yet").keys() == {".lock", "_run.json", "model"}


def test_a_second_writer_is_refused_or_waits_and_a_reader_is_neither(tmp_path):
    finish(tmp_path, "model")
    ended = list[str]()

    def wait() -> None:
        with run(tmp_path, wait=True):
            ended.append("waited")

    with held(tmp_path) as process:
        refused(tmp_path, "another process is writing here; wait for it, or name another folder", restart=True)
        assert run_folder.result_of(tmp_path) == {"loss": 1}
        work = threading.Thread(target=wait)
        work.start()
        work.join(0.3)
        assert not ended
        process.kill()  # the system releases its lock
        work.join(60)
    assert ended == ["waited"]


def test_a_disk_without_locks_is_told_of(tmp_path, monkeypatch):
    monkeypatch.setattr(portalocker.Lock, "acquire", Mock(side_effect=portalocker.LockException("No locks available")))
    refused(tmp_path, "no file can be locked here .No locks available.; name another disk")


def replace(place: Path, *names: str) -> None:
    with run_folder.replaced(place, "page", names) as new:
        for name in names:
            (new / name).write_text("new")


def test_new_files_replace_the_recorded_ones_and_what_others_put_there_stays(tmp_path):
    page, link = tmp_path / "page", tmp_path / "link"
    link.symlink_to(page)
    replace(page, "index", "stale")
    (page / ".git").mkdir()
    (page / "CNAME").write_text("mine")
    before = state(page)
    with pytest.raises(FileNotFoundError), run_folder.replaced(link, "page", ["index"]) as new:
        (new / "index" / "in no folder").write_text("half")
    assert state(page) == before
    replace(link, "index")
    assert link.is_symlink()
    assert {path.name for path in page.iterdir()} == {".git", ".lock", "CNAME", "_run.json", "index"}
    with pytest.raises(UserError, match="holds files that no run recorded"):
        replace(page, "CNAME")
    assert (page / "CNAME").read_text() == "mine"


def test_a_replacement_that_is_killed_at_any_change_is_completed_by_the_next(tmp_path, monkeypatch):
    """The process dies at its first change to the disk, or at the second, and so on."""
    for count in range(20):
        page, left = tmp_path / str(count), count
        replace(page, "index", "stale")

        def change(call: Callable[..., Any], *args: Any, **how: Any) -> Any:
            nonlocal left
            left -= 1
            return call(*args, **how) if left >= 0 else os._exit(9)

        if (process := os.fork()) == 0:
            for name in ("rename", "replace", "unlink", "rmdir", "mkdir"):
                monkeypatch.setattr(os, name, functools.partial(change, getattr(os, name)))
            replace(page, "index", "other")
            os._exit(0)
        killed = os.waitpid(process, 0)[1] != 0
        record = run_folder.read(page)
        if record and record.result is not None:  # finished: the old files or the new ones
            held_now = {path.name for path in page.iterdir() if path.name[0] not in "._"}
            assert held_now in ({"index", "stale"}, {"index", "other"})
            assert (killed, held_now) != (False, {"index", "stale"})
        replace(page, "index")
        assert {path.name for path in page.iterdir()} == {".lock", "_run.json", "index"}
        if not killed:
            break
    assert 6 < count < 19


def test_a_link_to_a_file_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_json(tmp_path / "link", {"loss": 1})
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == '{\n "loss": 1\n}\n'
    (tmp_path / "folder").mkdir()
    (tmp_path / "also").symlink_to(tmp_path / "folder")
    for name in ("link", "also"):
        storage_of(tmp_path).delete(name)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder"}
