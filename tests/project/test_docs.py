"""The documents, the code and the recipes name only what exists.

* Files named in documents, docstrings, comments and recipes exist, unless .gitignore lists them as made by a run
  (`test_commands`: modules). The log and the changelog may name earlier ones.
* Links in documents lead to existing files and headings.
* Each test named in tests/FAULTS.md exists.
* These checks find the errors in an example text.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pathspec

ROOT = Path(__file__).parents[2]
DOCS = Path("docs")
IGNORED = pathspec.GitIgnoreSpec.from_lines((ROOT / ".gitignore").read_text().splitlines())
HISTORY = ("CHANGELOG.md", "LOG.md", "report.md")
WRITTEN = ("Makefile", "run")
"""Text files without a suffix."""
TEXT = (".py", ".sh", ".md", ".toml", ".yml", ".html", ".ipynb")
"""Suffixes of text files. Other files must exist only if named with their folder."""
GENERATED = ("commands.md", "api.md", "tutorial.md")
"""Pages that docs/hooks.py writes for the site."""
USERS = "my_"
"""How the names of files that a reader writes begin."""
INSTALLED = "distill/shipped/"
"""Exists only in an installed package."""


def _files(folder: Path = ROOT) -> Iterator[Path]:
    """All files of the checkout that are not ignored, relative to ROOT."""
    for entry in sorted(folder.iterdir()):
        name = entry.relative_to(ROOT).as_posix()
        if entry.is_symlink() or entry.name == ".git" or IGNORED.match_file(name + "/" * entry.is_dir()):
            continue
        if entry.is_dir():
            yield from _files(entry)
        else:
            yield entry.relative_to(ROOT)


FILES = tuple(_files())
NAMES = {file.name for file in FILES}
FOLDERS = {file.parts[0] for file in FILES if len(file.parts) > 1}


def read(file: Path) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def prose(source: str) -> str:
    """The docstrings and comments of a Python file."""
    return "\n".join(map("".join, re.findall(r'"""(.*?)"""|# ([^\n]*)', source, re.DOTALL)))


def missing_files(text: str, folder: Path) -> list[str]:
    """Paths in a text that exist neither below ROOT, nor in the package, nor in the text's own folder."""
    text = re.sub(r"\w+://\S+", " ", text)
    found = []
    for path in re.findall(r"(?<![\w/.$}>*~-])(?:\.?[\w-][\w.-]*/)*\.?[\w*-][\w.*-]*/?", re.sub(r"\.?\./", " ", text)):
        path = path.rstrip(".")
        named = Path(path).suffix in TEXT
        if "/" not in path.rstrip("/"):
            absent = named and path not in NAMES and "*" not in path
        elif named or path.split("/")[0] in FOLDERS:
            absent = not any(_is_there(place, path) for place in (ROOT, ROOT / "distill", ROOT / folder))
        else:
            absent = False
        if absent and not path.startswith((INSTALLED, USERS, *GENERATED)) and not IGNORED.match_file(path):
            found.append(path)
    return found


def _is_there(place: Path, path: str) -> bool:
    return any(place.glob(path)) if "*" in path else (place / path).exists()


def dead_links(text: str, page: Path) -> list[str]:
    """Links of a page, outside code, to a missing file or heading."""
    text = re.sub("^(```.*?^```|    [^\n]*)$", "", text, flags=re.MULTILINE | re.DOTALL)
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        is_there = (ROOT / target).exists() and (not heading or heading in _headings(read(target)))
        if "://" not in link and not is_there:
            found.append(link)
    return found


def _headings(page: str) -> set[str]:
    """GitHub's anchors of a page's headings."""
    titles = re.findall("^#+ (.*)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def missing_tests(text: str, known: Mapping[str, set[str]]) -> list[str]:
    """Tests named in a text, as in `test_rules`: `a_name`, `another_…`, that do not exist."""
    found = []
    for files, names in re.findall(r"((?:`test_\w+`(?:, )?)+)(?:: ((?:`[\w…]+`(?:, slow: |, )?)+))?", text):
        stems = re.findall(r"`(\w+)`", files)
        found += [stem for stem in stems if stem not in known]
        there = set().union(*(known.get(stem, set()) for stem in stems))
        for name in re.findall("`([^`]+)`", names):
            pattern = "test_" + name.replace("…", r"\w*")
            if not any(re.fullmatch(pattern, test) for test in there):
                found.append(f"{', '.join(stems)}: {name}")
    return found


def _tests() -> dict[str, set[str]]:
    """The test functions of each test file, by its stem."""
    found: dict[str, set[str]] = {}
    for file in FILES:
        if file.parts[0] == "tests" and file.suffix == ".py":
            tree = ast.parse(read(file))
            found[file.stem] = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return found


def test_files_that_are_named_exist():
    wrong = {}
    for file in FILES:
        if (file.suffix in TEXT or file.name in WRITTEN) and file.name not in HISTORY:
            text = read(file)
            said = prose(text) if file.suffix == ".py" else text
            wrong[file.as_posix()] = missing_files(said, file.parent)
    assert {file: names for file, names in wrong.items() if names} == {}
    assert {"README.md", "docs/sources.md", "distill/game/rules.py", "pipelines/quickstart.sh"} <= set(wrong)


def test_links_lead_to_files_and_headings():
    dead = {page.as_posix(): dead_links(read(page), page) for page in FILES if page.suffix == ".md"}
    assert {page: links for page, links in dead.items() if links} == {}


def test_the_tests_that_the_faults_name_exist():
    page = read(Path("tests/FAULTS.md"))
    assert missing_tests(page, _tests()) == []
    assert len(re.findall("`test_", page)) > 60


def test_errors_in_an_example_text_are_found():
    wrong = [
        "distill/networks/a.py",
        "networks/a.py",
        "pipelines/a.sh",
        "gone.md",
        "docs/none/*.png",
        "data/benchmark/a.csv",
    ]
    right = "`networks/cnn.py`, models/cnn/best.keras, docs/*.png, https://a.b/c.md, 4 boards/s, data/games/"
    assert missing_files("`{}`, {}: ./{} ({}) {} {}.".format(*wrong), DOCS) == wrong
    assert missing_files(f"{right}, `README.md`, data.md, docs/data.md, ../distill/train.py", DOCS) == []

    links = "[a](none.md) [b](data.md#none) [c](#none) [d](data.md#packed-boards) [e](https://a.b)\n    [f](g)"
    assert dead_links(links, DOCS / "study.md") == ["none.md", "data.md#none", "#none"]

    known = {"test_rules": {"test_a_row_wins", "test_a_column_wins"}, "test_tree": set()}
    named = "`test_rules`: `a_row_wins`, slow: `a_col…_wins`, `a_line_wins`; `test_tree`: `grows`; slow: `test_none`"
    assert missing_tests(named, known) == ["test_rules: a_line_wins", "test_tree: grows", "test_none"]
