"""What artefacts say about their origin.

* The versions are those of the packages that are installed.
* The commit is the checkout's, with "+" exactly while a tracked file differs. `distill.__version__` tells it; the
  version that files name does not.
* The line that installs an extra names its packages, the same in a checkout and installed, and no message has another.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from packaging.version import Version

import distill
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
    head = provenance.commit()
    assert head is not None
    assert len(head) == 40
    assert set(head) <= set("0123456789abcdef")
    (checkout / "untracked").write_text("data", encoding="utf-8")
    assert provenance.commit() == head
    assert distill.__version__ == f"{distill.VERSION}+g{head[:7]}"
    (checkout / "file").write_text("two", encoding="utf-8")
    assert provenance.commit() == head + "+"
    assert distill.__version__ == f"{distill.VERSION}+g{head[:7]}.dirty"
    assert str(Version(distill.__version__)) == distill.__version__  # as pip compares versions
    assert provenance.versions()["distill"] == distill.VERSION  # files of games hold it: their bytes know no commit
    (checkout / "file").write_text("one", encoding="utf-8")
    assert provenance.commit() == head


def test_the_line_that_installs_an_extra_names_its_packages_and_no_message_has_another():
    assert provenance.install_line("solver") == 'python -m pip install "bitbully>=0.0.70"'
    sources = [file for file in Path(distill.__file__).parent.rglob("*") if file.suffix in (".py", ".js", ".html")]
    assert len(sources) > 50
    assert [file.name for file in sources if "pip install" in file.read_text(encoding="utf-8")] == ["provenance.py"]
