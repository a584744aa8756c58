"""Links in documents lead to existing files and headings, and tests/FAULTS.md names only tests that exist."""

import ast
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = Path("docs")


def dead_links(text: str, page: Path) -> list[str]:
    """Links of a page, outside code, to a missing file or heading."""
    text = re.sub("^(```.*?^```|    [^\n]*)$", "", text, flags=re.MULTILINE | re.DOTALL)
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, heading = link.partition("#")
        target = ROOT / (page.parent / path if path else page)
        exists = target.exists() and (not heading or heading in _headings(target.read_text(encoding="utf-8")))
        if "://" not in link and not exists:
            dead.append(link)
    return dead


def _headings(page: str) -> set[str]:
    """GitHub's anchors of a page's headings."""
    titles = re.findall("^#+ (.*)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def missing_tests(text: str, known: Mapping[str, set[str]]) -> list[str]:
    """Tests named in a text, as in `test_rules`: `a_name`, `another_…`, that do not exist."""
    missing = []
    for files, names in re.findall(r"((?:`test_\w+`(?:, )?)+)(?:: ((?:`[\w…]+`(?:, slow: |, )?)+))?", text):
        stems = re.findall(r"`(\w+)`", files)
        missing += [stem for stem in stems if stem not in known]
        tests = set().union(*(known.get(stem, set()) for stem in stems))
        for name in re.findall("`([^`]+)`", names):
            pattern = "test_" + name.replace("…", r"\w*")
            if not any(re.fullmatch(pattern, test) for test in tests):
                missing.append(f"{', '.join(stems)}: {name}")
    return missing


def test_links_lead_to_files_and_headings():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "*.md"], capture_output=True, text=True, check=True).stdout
    pages = [Path(name) for name in listed.splitlines() if (ROOT / name).is_file()]
    assert DOCS / "data.md" in pages
    dead = {page: dead_links((ROOT / page).read_text(encoding="utf-8"), page) for page in pages}
    assert {page: links for page, links in dead.items() if links} == {}


def test_the_tests_that_the_faults_name_exist():
    known = {}
    for file in (ROOT / "tests").rglob("test_*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        known[file.stem] = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    page = (ROOT / "tests/FAULTS.md").read_text(encoding="utf-8")
    assert missing_tests(page, known) == []
    assert len(re.findall("`test_", page)) > 60
