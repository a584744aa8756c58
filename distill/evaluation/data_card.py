"""The data card of a folder of games or packed boards: how it was made, what is in it, what its labels are worth."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from distill.common import DataError, provenance, read_object, write_atomically
from distill.evaluation import report
from distill.evaluation.grading import METRICS
from distill.evaluation.labels import LabelQuality
from distill.evaluation.noise_ceiling import NoiseCeiling
from distill.games import census
from distill.games.census import Census
from distill.games.reader import Run
from distill.games.schema import PACKED_ROW, ROW

TITLE, PACKED_TITLE = "# Games `", "# Boards `"
"""The first words of a card."""

_NO_FLAGS = {"search_version", "puct_version", "network", "labeller_source"}
"""Entries of a run's identity that no flag sets."""

QUALITY = (
    "Rows drawn at random were graded by an exact solver. *optimal*: the label keeps the best score; *outcome*: it "
    "keeps win, draw or loss; *critical*: outcome, over boards where moves differ in it. In percent, with half the "
    "width of the 95 % interval."
)
CEILING = (
    "The teacher labelled rows drawn at random {labels} times again. *two fresh labels agree*: equal pairs among these "
    "labels; *stored and fresh agree*: the same with the stored label. *noise ceiling*: the accuracy of a model that "
    "always predicts the most frequent label. On a board that is its own mirror a column and its mirror are one label. "
    "In percent, with half the width of the 95 % interval."
)


def require(page: Path) -> None:
    """Raise DataError for an existing file that is no data card: it would be replaced."""
    if page.is_file() and not page.read_bytes().startswith((TITLE.encode(), PACKED_TITLE.encode())):
        raise DataError(f"{page}: is no data card and would be replaced; name another --out")


def write(
    page: Path,
    run: Run,
    manifest: Mapping[str, Any],
    counted: Census,
    quality: LabelQuality | str,
    ceiling: NoiseCeiling | str,
    *,
    use: str,
    command: Sequence[str],
) -> None:
    """Write the card of games.

    Args:
      manifest: of the run, its settings under `identity`.
      quality, ceiling: what was measured of the labels, or the sentence that says why it was not.
      use: a sentence on what the data are for; may be empty.
      command: the words of the line that writes this card.
    """
    made, games, rows = manifest["identity"], counted.games, counted.rows
    versions = ", ".join(f"{name} {version}" for name, version in manifest.get("versions", {}).items())
    results = {"wins": counted.results[1], "draws": counted.results[0], "losses": counted.results[-1]}
    mean = sum(stones * count for stones, count in counted.lengths.items()) / games
    facts = {
        "run": run.name,
        "version of the search": made.get("puct_version", made.get("search_version")),
        "hash of the network's weights": made.get("network"),
        "hash of the labeller's source": made.get("labeller_source"),
        "commit": manifest.get("commit"),
        "versions": versions,
        "games, rows": f"{games:,}, {rows:,}: {rows / games:.1f} a game",
        "distinct boards": f"{counted.boards:,} up to mirror, {rows / counted.boards:.2f} rows each; "
        f"{counted.repeated / rows:.1%} of the rows are on a repeated board",
        "distinct last positions": f"{counted.endings:,}",
        "simulations": f"{counted.simulations:,}",
        "results of the first player": ", ".join(f"{n:,} {name} ({n / games:.1%})" for name, n in results.items()),
        "stones at the end": f"{min(counted.lengths)} to {max(counted.lengths)}, mean {mean:.1f}",
        "labels, column 1 to 7": ", ".join(f"{count / rows:.1%}" for count in counted.labels),
        "moves other than the label": f"{counted.off_label:,} ({counted.off_label / rows:.1%})",
    }
    by_ply = {
        ply: [f"{found.rows:,}", f"{found.boards:,}", f"{100 * found.repeated / found.rows:.1f}"]
        for ply, found in counted.plies.items()
    }
    limits = [
        "Boards come as often as they were met, in the orientation that was played. Rows of one game are not "
        "independent of each other. `prepare` and `train` merge equal boards, put a game into one split as a whole, "
        "and keep the benchmark's boards out of training.",
        f"The first {min(counted.openings)} to {max(counted.openings)} moves of a game are random and not labelled, so "
        "few rows have so few stones.",
        "A label is a search's opinion and need not be optimal: no solver took part.",
    ]
    if "network" in made:
        limits.append("The network that played also evaluated the leaves of its search, so labels share its mistakes.")
    sections = [
        f"{TITLE}{run.folder.resolve().name}`",
        _filled(f"{games:,} games, {rows:,} labelled positions; {_labeller(made)}. {use}".strip()),
        f"    {shlex.join(rebuild_command(run.folder, manifest))}",
        *_body(run, facts, ROW, ["rows", "boards", "repeated, %"], by_ply, quality, limits),
        "## Noise ceiling",
        ceiling if isinstance(ceiling, str) else _filled(CEILING.format(labels=ceiling.labels)),
        *([] if isinstance(ceiling, str) else [report.noise_ceiling(ceiling)]),
    ]
    _write(page, sections, command)


def write_packed(
    page: Path,
    run: Run,
    manifest: Mapping[str, Any],
    stones: Mapping[int, int],
    quality: LabelQuality | str,
    *,
    use: str,
    command: Sequence[str],
) -> None:
    """Write the card of packed boards; `stones` has the number of boards by stones on them."""
    inputs = manifest["inputs"]
    games, rows = (sum(each[name] for each in inputs) for name in ("games", "rows"))
    facts = {
        "distinct boards, up to mirror": f"{run.rows:,}",
        "merged from": f"{rows:,} rows of {games:,} games of {len(inputs)} runs; `manifest.json` has their settings",
        "commit": manifest.get("commit"),
    }
    by_ply = {ply: [f"{count:,}"] for ply, count in stones.items()}
    limits = [
        "`train`, `prepare` and `describe` take the folder as they take one of games. Each board counts as a game of "
        "its own, so a split is by board.",
        "`prepare` left out the benchmark's boards, unless told otherwise. The number of rows of a board and the moves "
        "played are not kept.",
    ]
    sections = [
        f"{PACKED_TITLE}{run.folder.resolve().name}`",
        _filled(
            f"{run.rows:,} boards, each with the visits of the searches that met it, their value and the games' "
            f"results; the label is the column with most visits. {use}".strip()
        ),
        *_body(run, facts, PACKED_ROW, ["boards"], by_ply, quality, limits),
    ]
    _write(page, sections, command)


def _write(page: Path, sections: Sequence[str], command: Sequence[str]) -> None:
    origin = f"Written at commit {provenance.commit() or 'unknown'} by\n\n    {shlex.join(command)}"
    write_atomically(page, ("\n\n".join([*sections, origin]) + "\n").encode())


def _body(
    run: Run,
    facts: Mapping[str, Any],
    columns: Iterable[Any],
    counts: Sequence[str],
    by_ply: Mapping[int, Sequence[str]],
    quality: LabelQuality | str,
    limits: Sequence[str],
) -> list[str]:
    """The sections that both cards have."""
    size = sum(shard.path.stat().st_size for shard in run.shards) / 1e6
    facts = dict(facts) | {
        "files": f"{len(run.shards):,} Parquet files, {size:.1f} MB",
        "columns (`distill/games/schema.py`)": ", ".join(f"`{column.name}` {column.type}" for column in columns),
        "`LC_ALL=C sha256sum shard-*.parquet \\| sha256sum`": f"`{census.bytes_digest(run)}`",
        "the same over the rows' values (`content_hash`)": f"`{census.rows_digest(run)}`",
        "licence": "Apache-2.0",
    }
    pairs = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts.items() if value is not None)]
    grades: dict[int, list[str]] = {}
    if isinstance(quality, str):
        graded, header = [quality], list[str]()
    else:
        shares = [f"{name} {report.percent(getattr(quality, name))}" for name in METRICS]
        graded = [_filled(QUALITY), f"{quality.rows:,} of {quality.of:,} labels graded: {', '.join(shares)}."]
        header = ["graded", *METRICS]
        for ply, found in quality.by_ply.items():
            grades[ply] = [f"{found['rows']:,}", *(report.percent(found[name]) for name in METRICS)]
    missing = ["0", "–", "–", "–"][: len(header)]
    by_stones = [[str(ply), *counted, *grades.get(ply, missing)] for ply, counted in by_ply.items()]
    return [
        "## What is in it",
        "\n".join(pairs),
        "## Use and limits",
        "\n".join(_filled(line, "- ") for line in limits),
        "## Label quality",
        *graded,
        report.table(["stones", *counts, *header], by_stones),
    ]


def _labeller(made: Mapping[str, Any]) -> str:
    """What chose the labels, as a clause."""
    search = f"search of {made.get('simulations', 0):,} simulations"
    if "network" in made:
        labeller = f"a network's own {search}"
    elif "labeller" in made:
        labeller = f"`{made['labeller']}`"
    else:
        labeller = f"the majority of {made.get('votes', 1)} votes, each a {search} without a network,"
    return f"{labeller} chose every label"


def rebuild_command(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """The words of the command that makes the run, with every setting, so that no default can change it."""
    made = manifest["identity"]
    words = ["python", "-m", "distill.generate"]
    if "network" in made:
        network = str(read_object(folder / "config.json").get("init") or "NETWORK")
        words = ["python", "-m", "distill.selfplay", "--games-only", "--init", network]
        words += ["--precision", made["network"].partition("-")[2] or "float32"]
    for name, value in made.items():
        if name in _NO_FLAGS:
            continue
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            values = value if isinstance(value, list) else [value]
            words += [f"--{flag}", *("none" if each is None else str(each) for each in values)]
    return [*words, "--games", str(manifest["games"]), "--out", str(folder)]


def _filled(text: str, bullet: str = "") -> str:
    return textwrap.fill(text, 118, initial_indent=bullet, subsequent_indent=" " * len(bullet), break_on_hyphens=False)
