"""The data card: how a run of games was made, what is in it, what it is worth, how to make it again, on one page."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from distill.common import DataError, provenance, read_object, write_atomically
from distill.evaluation import plots, report
from distill.evaluation.labels import LabelQuality
from distill.evaluation.repeats import Repeats
from distill.game import rules
from distill.games import census
from distill.games.census import Census
from distill.games.games import Run
from distill.games.schema import RELABELLED

TITLE, PACKED_TITLE = "# Games `", "# Boards `"
"""What every card begins with: of games, of packed boards."""

LISTED_SHARDS = 32
"""Runs of at most so many shards name the hash of each."""

_NO_FLAGS = {"search_version", "puct_version", "network", RELABELLED}
"""Entries of a run's identity that no flag sets."""


def require(page: Path) -> None:
    """Raise DataError where a file lies already that is no data card, or no card's picture: it would be replaced."""
    if page.is_file():
        others = [] if page.read_bytes().startswith((TITLE.encode(), PACKED_TITLE.encode())) else [page]
    else:
        others = [picture for picture in _pictures(page).values() if picture.exists()]
    if others:
        raise DataError(f"{others[0]}: is no data card's and would be replaced; name another --out")


def _pictures(page: Path) -> dict[str, Path]:
    """Those of a card, beside it, by what they show."""
    return {title: page.with_name(f"{page.stem}-{title}.png") for title in ("rows", "labels")}


def write(
    page: Path,
    run: Run,
    manifest: Mapping[str, Any],
    counted: Census,
    quality: LabelQuality | None,
    again: Repeats | None,
    *,
    ungraded: str,
    unasked: str,
    use: str,
    command: Sequence[str],
) -> None:
    """Write the card and, beside it, its pictures, which begin with its name.

    Args:
      manifest: of the run, its settings under `identity`.
      quality: what the labels are worth; None where they were not graded, which `ungraded` then explains.
      again: how often the teacher repeats itself; None where it was not asked, which `unasked` then explains.
      use: a sentence on what the data are for; may be empty.
      command: the words of the line that writes this card.
    """
    made = manifest["identity"]
    pictures = _pictures(page)
    sections = [
        f"{TITLE}{run.folder.resolve().name}`",
        _filled(f"{counted.games:,} games, {counted.rows:,} labelled positions; {_player(made)}. {use}".strip()),
        "## How they were made",
        _recipe(run, manifest),
        "## What is in them",
        _contents(counted),
        "## Redundancy",
        _redundancy(counted),
        f"![rows by stones]({pictures['rows'].name})",
        "## Label quality",
        *(_quality(run, quality, pictures["labels"]) if quality else [ungraded]),
        "## The teacher asked again",
        *(_repeats(again) if again else [unasked]),
        "## By stones on the board",
        _by_stones(
            ["rows", "boards", "repeated, %"],
            {
                ply: [f"{found.rows:,}", f"{found.boards:,}", f"{100 * found.repeated / found.rows:.1f}"]
                for ply, found in counted.plies.items()
            },
            quality,
        ),
        "## Use and limits",
        _limits(counted, made),
        "## The same bytes",
        _hashes(run, made),
        f"Written at commit {provenance.commit() or 'unknown'} by\n\n{_shown(command)}",
    ]
    write_atomically(page, ("\n\n".join(filter(None, sections)) + "\n").encode())
    plots.plot_rows(pictures["rows"], counted)  # after the page, which tells whose the pictures are
    _draw_labels(pictures["labels"], run, quality)


def write_packed(
    page: Path,
    run: Run,
    manifest: Mapping[str, Any],
    stones: Mapping[int, int],
    quality: LabelQuality | None,
    *,
    ungraded: str,
    use: str,
    command: Sequence[str],
) -> None:
    """Write the card of packed boards and, beside it, its picture; `stones` has the boards by stones on them."""
    picture = _pictures(page)["labels"]
    inputs = manifest["inputs"]
    merged = sum(each["rows"] for each in inputs)
    told = [
        ["boards, unlike up to mirror", f"{run.rows:,}"],
        ["merged from", f"{merged:,} rows of {sum(each['games'] for each in inputs):,} games of {len(inputs)} runs"],
        ["files", f"{len(run.shards)}, {sum(shard.path.stat().st_size for shard in run.shards) / 1e6:.1f} MB"],
        ["made at commit", str(manifest.get("commit"))],
    ]
    sections = [
        f"{PACKED_TITLE}{run.folder.resolve().name}`",
        _filled(
            f"{run.rows:,} boards, each with the visits of the searches that met it, their value and how the games "
            f"ended; the label is the column with most visits. {use}".strip()
        ),
        "## How they were made",
        _pairs(told),
        "The runs, what all have in common first:",
        _runs(inputs),
        "## Label quality",
        *(_quality(run, quality, picture) if quality else [ungraded]),
        "## By stones on the board",
        _by_stones(["boards"], {ply: [f"{count:,}"] for ply, count in stones.items()}, quality),
        "## Use and limits",
        "\n".join(
            _filled(line, "- ")
            for line in (
                "`train`, `prepare` and `describe` take the folder as they take one of games: "
                f"`python -m distill.train --data {run.folder}`. Each board counts as a game of its own.",
                "No board of the benchmark is among them, unless `prepare` was told so. How often a board was met is "
                "not kept, nor the moves that were played.",
            )
        ),
        "## The same bytes",
        _pairs([["`LC_ALL=C sha256sum shard-*.parquet \\| sha256sum`", f"`{census.bytes_digest(run)}`"]]),
        f"Written at commit {provenance.commit() or 'unknown'} by\n\n{_shown(command)}",
    ]
    write_atomically(page, ("\n\n".join(sections) + "\n").encode())
    _draw_labels(picture, run, quality)


def _draw_labels(picture: Path, run: Run, quality: LabelQuality | None) -> None:
    if quality:
        plots.plot_by_ply(picture, {str(run.folder): quality.by_ply})
    else:
        picture.unlink(missing_ok=True)  # of an older card


def _runs(inputs: Sequence[Mapping[str, Any]]) -> str:
    """The settings that runs have in common, and a line for each with those in which they differ."""
    settings = [each.get("settings", {}) for each in inputs]
    names = list(dict.fromkeys(name for each in settings for name in each))
    differ = [name for name in names if any(each.get(name) != settings[0].get(name) for each in settings)]
    common = [[name, _value(settings[0].get(name))] for name in names if name not in differ]
    lines = []
    for each, made in zip(inputs, settings, strict=True):
        own = [_value(made.get(name)) for name in differ]
        lines.append([each["run"][:16], f"{each['games']:,}", f"{each['rows']:,}", *own])
    return f"{_pairs(common)}\n\n{report.table(['run', 'games', 'rows', *differ], lines)}"


def _value(value: Any) -> str:
    """A setting in a cell; of a hash its first digits."""
    words = str(value if not isinstance(value, list) else " ".join(map(str, value)))
    return words[:16] if len(words) >= 64 else words


def _player(made: Mapping[str, Any]) -> str:
    """Who chose the moves and labels, in words."""
    if RELABELLED in made:
        return f"{_player({name: value for name, value in made.items() if name != RELABELLED})}; labels changed since"
    simulations = f"{made.get('simulations', 0):,} simulations"
    if "network" in made:
        return f"a network's own search of {simulations} ({made.get('root')} root) played both sides and labelled"
    votes = made.get("votes", 1)
    searches = f"the majority of {votes} searches of {simulations} each" if votes > 1 else f"a search of {simulations}"
    played = "around which noise drew the move" if made.get("noise_at") == "move" else "which was played"
    return f"{searches} ({made.get('rollout')} playouts, no network) chose every label, {played}"


def rebuild_command(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """The words of the command that makes the run, every setting given, so that no default can change it."""
    made = manifest["identity"]
    words = ["python", "-m", "distill.generate"]
    if "network" not in made:
        made = {"noise_at": "label"} | made  # which identities leave out
    else:
        words = ["python", "-m", "distill.selfplay", "--games-only", "--init", _network(folder)]
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


def _network(folder: Path) -> str:
    """The network that played, as its run was told; a word in its place where that was not stored."""
    return str(read_object(folder / "config.json").get("init") or "NETWORK")


def _recipe(run: Run, manifest: Mapping[str, Any]) -> str:
    made = manifest["identity"]
    versions = manifest.get("versions", {})
    facts = {
        "run": run.name,
        "version of the search": made.get("puct_version", made.get("search_version")),
        "weights of the network, hash": made.get("network"),
        "labels changed after that command, hash of the rows": made.get(RELABELLED),
        "made at commit": manifest.get("commit"),
        "with": ", ".join(f"{name} {version}" for name, version in versions.items()) or None,
    }
    told = [[name, str(fact)] for name, fact in facts.items() if fact is not None]
    return f"{_shown(rebuild_command(run.folder, manifest))}\n\n{_pairs(told)}"


def _shown(words: Sequence[str]) -> str:
    """A command as a block of code, cut into lines before flags."""
    lines = ["   "]
    flags: list[list[str]] = []
    for word in words:
        if word.startswith("--") or not flags:
            flags.append([])
        flags[-1].append(word)
    for flag in map(shlex.join, flags):
        if len(lines[-1]) + len(flag) > 112:
            lines.append("     ")
        lines[-1] += f" {flag}"
    return " \\\n".join(lines)


def _pairs(rows: list[list[str]]) -> str:
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def _contents(counted: Census) -> str:
    games, rows = counted.games, counted.rows
    first = {1: "wins", 0: "draws", -1: "losses"}
    lengths = counted.lengths
    told = [
        ["games, rows", f"{games:,}, {rows:,}: {rows / games:.1f} a game"],
        ["simulations", f"{counted.simulations:,}"],
        ["files", f"{counted.shards:,}, {counted.bytes / 1e6:.1f} MB"],
        [
            "results of the first player",
            ", ".join(f"{counted.results[r]:,} {word} ({counted.results[r] / games:.1%})" for r, word in first.items()),
        ],
        [
            "stones at the end",
            f"{min(lengths)} to {max(lengths)}, mean {sum(n * count for n, count in lengths.items()) / games:.1f}, "
            f"quartiles {', '.join(str(_quantile(lengths, share)) for share in (0.25, 0.5, 0.75))}",
        ],
        ["labels, column 1 to 7", ", ".join(f"{count / rows:.1%}" for count in counted.labels)],
        ["moves other than the label", f"{counted.off_label:,} ({counted.off_label / rows:.1%})"],
    ]
    openings = report.table(
        ["random moves before the first label", *map(str, counted.openings)],
        [["games", *(f"{count:,}" for count in counted.openings.values())]],
    )
    return f"{_pairs(told)}\n\n{openings}"


def _quantile(counts: Mapping[int, int], share: float) -> int:
    """The smallest value that at least `share` of all are not above; `counts` is in ascending order."""
    left = share * sum(counts.values())
    for value, count in counts.items():
        left -= count
        if left <= 0:
            return value
    raise ValueError("nothing was counted")


def _redundancy(counted: Census) -> str:
    summary = (
        f"Up to mirror {counted.boards:,} unlike boards, {counted.rows / counted.boards:.2f} rows a board; "
        f"{counted.repeated / counted.rows:.1%} of the rows are on a board that another row has too. The games have "
        f"{counted.endings:,} unlike last positions. The most frequent boards:"
    )
    drawn = [
        f"{number:,} rows ({number / counted.rows:.2%}):\n\n{textwrap.indent(rules.draw(position), '    ')}"
        for position, number in counted.frequent
    ]
    return "\n\n".join([_filled(summary), *drawn])


def _quality(run: Run, quality: LabelQuality, picture: Path) -> list[str]:
    return [
        _filled(
            f"{quality.rows:,} rows drawn at random were graded by exact scores. *optimal*: the label keeps the best "
            "score; *class*: it keeps win, draw or loss; *decisive*: class, over boards where moves differ in class. "
            "In percent, with half the width of the 95 % interval."
        ),
        report.label_summary(run.folder.resolve().name, quality),
        f"![labels by stones]({picture.name})",
    ]


def _repeats(again: Repeats) -> list[str]:
    return [
        _filled(
            f"Rows drawn at random were put to the teacher {again.labels} times more, each time with draws of its own. "
            "*two fresh labels agree*: the share of equal pairs among these labels; *stored and fresh agree*: the same "
            f"with the label that is stored. *ceiling*: how often the commonest of {again.labels - 1} is the other "
            "one, so what a student reaches that always says the commonest; of equally common ones that with most "
            "visits, then nearest the centre, then the lower column. On a board that is its own mirror a column and "
            "its mirror are one answer. In percent, with half the width of the 95 % interval."
        ),
        report.label_repeats(again),
    ]


def _by_stones(counts: Sequence[str], by_ply: Mapping[int, Sequence[str]], quality: LabelQuality | None) -> str:
    """A line for each number of stones: what was counted, and the grades of the labels where there are any."""
    header = ["stones", *counts, *(["graded", "optimal", "outcome", "critical"] if quality else [])]
    lines = []
    for ply, counted in by_ply.items():
        line = [str(ply), *counted]
        if quality:
            graded = quality.by_ply.get(ply)
            shares = [report.percent(graded[name]) if graded else "–" for name in ("optimal", "outcome", "critical")]
            line += [f"{graded['rows']:,}" if graded else "0", *shares]
        lines.append(line)
    return report.table(header, lines)


def _limits(counted: Census, made: Mapping[str, Any]) -> str:
    told = [
        "`prepare` and `train` read them: equal boards are merged, a game is in one split as a whole, and the "
        "benchmark's boards are kept out of training.",
        "A label is a search's opinion and need not be exact: no solver took part.",
        "Boards come as often as they were met, in the orientation that was played. Rows of one game are not "
        "independent of each other.",
        f"The first {min(counted.openings)} to {max(counted.openings)} moves of a game are random and not labelled, so "
        "few rows have so few stones, and these and later boards are stranger than those of sensible play.",
    ]
    if "network" in made:
        told.append(
            "The network that played also judged the leaves of its search: what it does not see, its labels do not "
            "show."
        )
        if not made.get("noise_fraction"):
            told.append(
                f"From {made.get('sampling_plies')} stones on nothing is left to chance, so games that meet there go "
                "on alike, and their rows are repeated to the end."
            )
    return "\n".join(_filled(line, "- ") for line in told)


def _hashes(run: Run, made: Mapping[str, Any]) -> str:
    if RELABELLED in made:
        text = "The command makes the boards and moves. The labels were changed afterwards; compare copies by these."
    elif "network" in made:
        text = (
            "Every game depends on the network, the settings, the seed and its own number alone. The command writes "
            "these bytes with these weights and versions, on a processor that rounds the network's arithmetic alike; "
            "elsewhere single moves may differ, and the games after them."
        )
    else:
        text = (
            "Every game depends on the settings, the seed and its own number alone. The command writes these bytes "
            "with the versions above, on any number of workers; with other versions compare the second line."
        )
    told = [
        ["`LC_ALL=C sha256sum shard-*.parquet \\| sha256sum`", f"`{census.bytes_digest(run)}`"],
        ["the same over the rows' values (`content_hash` in `manifest.json`)", f"`{census.rows_digest(run)}`"],
    ]
    parts = [_filled(text), _pairs(told)]
    if len(run.shards) <= LISTED_SHARDS:
        parts.append("\n".join(f"    {shard.sha256}  {shard.name}" for shard in run.shards))
    return "\n\n".join(parts)


def _filled(text: str, bullet: str = "") -> str:
    return textwrap.fill(text, 118, initial_indent=bullet, subsequent_indent=" " * len(bullet), break_on_hyphens=False)
