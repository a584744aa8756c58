"""What artefacts say of their origin: the commit, with "+" exactly while a tracked file differs, and the versions."""

import os
import shutil
import subprocess

import pytest

from distill.common import provenance


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with one committed file, in the place of this project's root."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)  # set while git runs a hook
    (tmp_path / "file").write_text("one", encoding="utf-8")
    for command in (
        ["init", "--quiet"],
        ["add", "file"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "commit", "--quiet", "-m", "one"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    return tmp_path


def test_the_commit_carries_a_plus_exactly_while_a_tracked_file_differs(checkout):
    commit = provenance.commit.__wrapped__  # a process asks once
    head = commit()
    assert head is not None
    assert len(head) == 40
    assert set(head) <= set("0123456789abcdef")
    (checkout / "untracked").write_text("data", encoding="utf-8")
    assert commit() == head
    (checkout / "file").write_text("two", encoding="utf-8")
    assert commit() == head + "+"
    (checkout / "file").write_text("one", encoding="utf-8")
    assert commit() == head
