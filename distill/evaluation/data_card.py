"""The data card of a folder of games or packed boards: how it was made, what is in it, how good its labels are."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from distill.common import DataError, provenance, run_folder, write_atomically
from distill.common.tables import table
from distill.evaluation import report
from distill.evaluation.labels import Shares
from distill.games import census, reader, schema
from distill.games.census import Census
from distill.games.reader import Run

TEMPLATE = Path(__file__).with_suffix(".md")
"""The card with the names of its parts in braces."""
TITLE, PACKED_TITLE = "# Games `", "# Boards `"
"""The first words of a card."""

LIMITS = """\
Rows of one game are not independent of each other, and a board occurs as often as games met it. A label is a search's
opinion and need not be optimal: no solver took part. `prepare` and `train` merge equal boards, put a game into one
split as a whole, and keep the benchmark's boards out of training."""
QUALITY = """\
An exact solver graded rows drawn at random. *optimal*: the label keeps the best score; *outcome*: it keeps the win,
draw or loss; *critical*: outcome, on boards where moves differ in it. In percent, with half the width of the 95 %
interval."""
CEILING = """\
The teacher labelled rows drawn at random again. *two fresh labels agree*: equal pairs among these labels; *stored and
fresh agree*: the same with the stored label. *noise ceiling*: the accuracy of a model that always predicts the most
frequent label. In percent, with half the width of the 95 % interval."""


def require(page: Path) -> None:
    """Raise DataError for an existing file that is no data card and would be replaced, or that cannot be written."""
    if page.exists() and not page.read_bytes().startswith((TITLE.encode(), PACKED_TITLE.encode())):
        raise DataError(f"{page}: is no data card and would be replaced; name another --out")
    place = next(folder for folder in page.absolute().parents if folder.exists())
    if not (place.is_dir() and os.access(place, os.W_OK)):
        raise DataError(f"{page}: {place} cannot be written; name another --out")


def about(run: Run, manifest: Mapping[str, Any]) -> str:
    """What the run holds and who labelled it, as the card begins. Raises DataError where the manifest does not say."""
    try:
        if manifest.get("kind") == schema.PACKED_BOARDS:
            games, rows = (sum(int(each[name]) for each in manifest["inputs"]) for name in ("games", "rows"))
            source = f", merged from {rows:,} rows of {games:,} games" if games else ""
            return f"{run.rows:,} distinct boards{source}."
        return f"{run.games:,} games, {run.rows:,} labelled positions; {_labeller(manifest['identity'])}."
    except (LookupError, TypeError, ValueError, AttributeError):
        raise DataError(f"{run.folder / run_folder.RECORD}: does not say how the run was made") from None


def write(
    page: Path,
    run: Run,
    manifest: Mapping[str, Any],
    counted: Census,
    quality: Shares | str,
    ceiling: Shares | str,
    *,
    use: str,
    command: Sequence[str],
) -> None:
    """Write the card of games or packed boards.

    Args:
      manifest: of the run.
      quality, ceiling: what was measured of the labels, or the sentence that says why it was not.
      use: a sentence on what the data are for; may be empty.
      command: the words of the line that writes this card.
    """
    totals = counted.plies.sum()
    files = f"{len(run.shards):,} Parquet file{'s' * (len(run.shards) > 1)}"
    size = sum(shard.path.stat().st_size for shard in run.shards) / 1e6
    if packed := manifest.get("kind") == schema.PACKED_BOARDS:
        made, facts = "`_run.json` names the runs of these games.", {}
    else:
        made = f"    {reader.remake_command(run.folder)}"
        results = zip(("wins", "draws", "losses"), counted.results.values(), strict=True)
        lengths = counted.lengths
        facts = {
            "distinct boards": f"{totals['boards']:,} up to mirror; {totals['repeated'] / totals['rows']:.1%} of the "
            "rows are on a repeated board",
            "simulations": f"{sum(shard.simulations for shard in run.shards):,}",
            "results of the first player": ", ".join(f"{n:,} {name} ({n / run.games:.1%})" for name, n in results),
            "stones at the end": f"{lengths.min()} to {lengths.max()}, mean {lengths.mean():.1f}",
        }
        # The card may be kept where the games are not, so it has what `--config` would read.
        facts["settings"] = ", ".join(f"{name} {value}" for name, value in manifest["identity"].items())
    facts |= {
        "run": run.name,
        "commit": str(manifest.get("commit")),
        "versions": ", ".join(f"{name} {version}" for name, version in manifest.get("versions", {}).items()),
        "files": f"{files}, {size:.1f} MB; columns: `distill/games/schema.py`",
        "`LC_ALL=C sha256sum shard-*.parquet \\| sha256sum`": f"`{census.bytes_digest(run)}`",
    }
    counts = [[f"{number:,}" for number in row] for row in counted.plies.reset_index().to_numpy().tolist()]
    if not isinstance(quality, str):
        graded = quality["optimal"]["all"].units
        found = report.by_stones(quality)
        quality = f"{QUALITY}\n\nLabels: {graded:,} of {run.rows:,} labels graded\n\n{found}"
    if not isinstance(ceiling, str):
        ceiling = f"{CEILING}\n\n{report.by_stones(ceiling)}"
    card = TEMPLATE.read_text(encoding="utf-8").format(
        title=PACKED_TITLE if packed else TITLE,
        name=run.folder.resolve().name,
        about=textwrap.fill(f"{about(run, manifest)} {use}".strip(), 118, break_on_hyphens=False),
        made=made,
        facts="\n".join(f"| {name} | {value} |" for name, value in facts.items()),
        counts=table(["stones", "rows", "boards", "repeated rows"], counts),
        limits="Each board counts as a game of its own, so a split is by board." if packed else LIMITS,
        quality=quality,
        ceiling=ceiling,
        commit=provenance.commit() or "unknown",
        command=shlex.join(command),
    )
    write_atomically(page, card.encode())


def _labeller(made: Mapping[str, Any]) -> str:
    """Where the labels are from, as a clause."""
    search = f"a search of {made.get('simulations', 0):,} simulations"
    if "network" in made:
        return f"each label is from {search} guided by a network"
    if "labeller" in made:
        return f"each label is from `{made['labeller']}`"
    return f"each label is the majority of {made.get('votes', 1)} votes, each by {search} without a network"
