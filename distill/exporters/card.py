"""The model card: what an app developer or a curious reader needs to know about a network, on one page.

It is a template over `export.json`: the network's facts, its files, the results of its run (`Results`), and its
mistakes. It starts with the front matter that the Hugging Face Hub reads, YAML between two lines of three dashes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from distill.common import file_hash, run_folder
from distill.common.settings import by_path
from distill.datasets.benchmark import HEADLINES
from distill.exporters import comparison, quantized
from distill.exporters.formats import FORMATS, Format
from distill.game import rules
from distill.networks import finding

TEMPLATE = Path(__file__).with_suffix(".md")
"""The card with the names of its parts in braces."""
_VALUE = "- `value` float32 (B,), expected outcome in [-1, 1] for the side to move\n"
_INT8 = """
The 8-bit files sometimes choose other columns. This table has the points that their moves lose against the network's,
paired, on the boards of the dev half that set no ranges, as stored and mirrored (negative: gained):

| file | set | boards | the same move | optimal lost | outcome lost |
|---|---|---|---|---|---|
{rows}
"""
_PROGRAMS = {
    "SavedModel": """
import numpy as np, tensorflow as tf

model = tf.saved_model.load("1")  # keep it: its weights live as long as this object
board = np.zeros((1, 6, 7), np.int8)
answer = model.signatures["serving_default"](board=tf.constant(board))
print(int(answer["move"][0]))
""",
    "LiteRT": """
import numpy as np
from ai_edge_litert.interpreter import Interpreter

runner = Interpreter("FILE").get_signature_runner("serving_default")
answer = runner(board=np.zeros((1, 6, 7), np.int8))
print(int(answer["move"][0]))
""",
    "ONNX": """
import numpy as np, onnxruntime

session = onnxruntime.InferenceSession("FILE")
board = np.zeros((1, 6, 7), np.int8)
(move,) = session.run(["move"], {"board": board})
print(int(move[0]))
""",
}
"""Lines that load a file of this title, or of this title and "int8"."""
_SHIPPED = ("cnn", "cnn-strong", "pillar", "pillar-large", "transformer", "transformer-strong")
_SHIPPED_LICENCE = """\
Apache-2.0, like the project that made it. The weights were learned from games that the project's own programs played,
without other data and without a solver."""
_USER_LICENCE = "The author of the network chooses its licence. distill, which wrote this card, is under Apache-2.0."
_NO_FIGURES = "None recorded beside the network; `python -m distill.evaluate` measures them."
_TOP1 = {
    "top1_all": "top-1 accuracy against the teacher's labels, on {rows}",
    "top1_unseen": "the same, on boards outside its training table",
    "top1_first_19": "the same, on the first 19 rows of each game",
}
_LEFT_OUT = (*_TOP1, "by_ply", "kind", "out", "schedule.plan", "prepared", "export", "restart")
"""Facts of a run that stand elsewhere on the card, or say nothing about the network."""
_MOST_FOLDERS = 3
"""The most folders of games that are listed one by one."""


@dataclass(frozen=True, kw_only=True)
class Results:
    """What is recorded about a network's run; None where something is unknown.

    Attributes:
      training: settings and counts by name, as the card lists them.
      top1: top-1 accuracy by the names of _TOP1; validation_rows_from: the rows that it was measured on.
      grades: of `distill.evaluate`: `player`, `half`, and by headline set and metric the mean with its interval.
      ships: whether the run trained a network of `models/reference/`; of others the card knows no licence.
      seed: of the run.
    """

    training: Mapping[str, Any]
    top1: Mapping[str, float]
    validation_rows_from: str | None
    grades: Mapping[str, Any] | None
    ships: bool
    seed: int | None

    @classmethod
    def of(cls, run: Mapping[str, Any], grades: Mapping[str, Any] | None = None) -> Results:
        """The results in a run's settings and metrics, by name; values of other types count as unknown."""
        # Settings that were not used are no information.
        training = {name: value for name, value in run.items() if value is not None and name not in _LEFT_OUT}
        folders, out, rows = (run.get(name) for name in ("data", "out", "validation_rows_from"))
        seed = run.get("learning.seed", run.get("seed"))  # of a training, or of another run
        if isinstance(folders, list) and len(folders) > _MOST_FOLDERS:
            training["data"] = f"{len(folders)} folders, {folders[0]} to {folders[-1]}"
        place = Path(out if isinstance(out, str) else "")
        ships = place.parent == Path("models") / finding.REFERENCE and place.name in _SHIPPED
        if ships and training:
            training.setdefault("commands", f"pipelines/reference.sh {place.name}")
        return cls(
            training=training,
            top1={name: run[name] for name in _TOP1 if isinstance(run.get(name), float)},
            validation_rows_from=rows if isinstance(rows, str) else None,
            grades=grades,
            ships=ships,
            seed=seed if type(seed) is int else None,
        )

    @classmethod
    def read(cls, folder: Path, metrics: Mapping[str, Any] | None = None) -> Results:
        """The results that a run's folder records, and grades in a report in the folder or beside it.

        Args:
          metrics: the results of a run that has not stored them yet. Of a self-play run, whose metrics are those of its
            last iteration, only the length counts.
        """
        record = run_folder.read(folder)
        result = (record.result if record else None) or {} if metrics is None else metrics
        if "iteration" in result:
            result = {"iterations": result["iteration"], "minutes that it took": result.get("minutes")}
        return cls.of({**by_path(record.settings if record else {}), **result}, _grades(folder))

    def recorded(self) -> dict[str, Any]:
        """What is known, by name, as JSON stores it."""
        return {name: value for name, value in asdict(self).items() if value is not None and name != "seed"}


def _grades(folder: Path) -> dict[str, Any] | None:
    """The grades of this network in a report in its folder or beside it, recognized by the hash of the graded file."""
    network = folder / finding.BEST
    for report in (folder, folder.parent) if network.is_file() else ():
        result = run_folder.result_of(report / "evaluation")
        players, networks, benchmark = (_mapping(result.get(name)) for name in ("players", "networks", "benchmark"))
        for name, player in players.items():
            graded = _mapping(_mapping(player).get("sets"))
            sets = {headline: graded[headline] for headline in HEADLINES if _has_shares(graded.get(headline))}
            # A network with a search has a name with @, and its grades are not those of the network.
            graded_file = _mapping(networks.get(name))
            is_this = graded_file.get("network_sha256") == file_hash(network) and graded_file.get("precision") != "int8"
            if sets and "@" not in name and is_this:
                return {"player": name, "half": str(benchmark.get("half")), "sets": sets}
    return None


def _mapping(value: Any) -> Mapping[str, Any]:
    """The value, or an empty mapping in place of anything else."""
    return value if isinstance(value, dict) else {}


def _has_shares(grades: Any) -> bool:
    """Whether the grades of a set have what the card shows."""
    shares = [_mapping(_mapping(grades).get(metric)) for metric in ("optimal", "outcome")]
    return all(isinstance(share.get(name), int | float) for share in shares for name in ("mean", "low", "high"))


def write(record: Mapping[str, Any], folder: Path) -> str:
    """The card as Markdown, from the content of `export.json`; the folder has the files, for their sizes."""
    formats = {format.file: format for format in FORMATS.values()}
    formats = {name: formats[name] for name in record["files"]}
    return TEMPLATE.read_text(encoding="utf-8").format(
        **{"commit": "unknown", **record}
        | {
            "library": "onnx" if finding.ONNX in formats else "tensorflow",
            "versions": ", ".join(f"{name} {version}" for name, version in record["versions"].items()),
            "files": "\n".join(_files(record["files"], formats, folder)),
            "boards": comparison.CHECKED_BOARDS,
            "measure": comparison.MEASURE,
            "int8": _int8(record["files"]),
            "programs": "\n\n".join(_programs(formats.values())),
            "value": _VALUE if record["value_head"] else "",
            "training": _training(record["training"]),
            "license": "apache-2.0" if record["ships"] else "unknown",
            "licence": _SHIPPED_LICENCE if record["ships"] else _USER_LICENCE,
            "figures": "\n".join(_figures(record)) or _NO_FIGURES,
            "mistakes": _mistakes(**record["mistakes"]),
        }
    )


def _training(facts: Mapping[str, Any]) -> str:
    return f"```json\n{json.dumps(facts, indent=1)}\n```" if facts else "Not recorded beside the network."


def _files(written: Mapping[str, Any], formats: Mapping[str, Format], folder: Path) -> Iterator[str]:
    for name, converted in written.items():
        place = folder / name
        difference = "see below" if converted["losses"] else f"{converted['difference']:.1e}"
        file = f"{name}/" if place.is_dir() else name
        yield f"| `{file}` | {formats[name].title} | {finding.size(place)} | {difference} |"


def _programs(formats: Collection[Format]) -> Iterator[str]:
    """For each kind of file that was written, lines that load it."""
    for title, lines in _PROGRAMS.items():
        files = [format.file for format in formats if format.title.removesuffix(" int8") == title]
        if files:
            also = "".join(f", also `{file}`" for file in files[1:])
            yield f"{title}{also}:\n\n```python\n{lines.strip().replace('FILE', files[0])}\n```"


def _int8(written: Mapping[str, Any]) -> str:
    rows = [
        f"| `{name}` | `{boards}` | {loss['boards']:,} | {loss['same']:.1%} "
        f"| {quantized.points(loss, 'optimal')} | {quantized.points(loss, 'outcome')} |"
        for name, converted in written.items()
        for boards, loss in converted["losses"].items()
    ]
    return _INT8.format(rows="\n".join(rows)) if rows else ""


def _figures(record: Mapping[str, Any]) -> Iterator[str]:
    rows = record.get("validation_rows_from", "rows it was not trained on")
    for name, share in record["top1"].items():
        yield f"- {share:.1%} {_TOP1[name].format(rows=rows)}"
    if grades := record.get("grades"):
        yield f"- by `python -m distill.evaluate {grades['player']}`, {grades['half']} half:"
        for name, graded in grades["sets"].items():
            best, keep = (
                f"{share['mean']:.1%} ({share['low']:.1%} to {share['high']:.1%})"
                for share in (graded["optimal"], graded["outcome"])
            )
            yield f"  - `{name}`: {best} of its moves are best, {keep} keep the win, draw or loss"


def _mistakes(boards: int, wrong: int, examples: Sequence[Mapping[str, Any]]) -> str:
    """`comparison.mistakes` in words, with the examples drawn next to each other."""
    said = f"On {wrong:,} of {boards:,} boards of the dev half of `heldout`, its move gives a win or a draw away."
    if not examples:
        return said
    shown = []
    for mistake in examples:
        drawn = rules.draw(rules.Position(mistake["current"], mistake["mask"])).splitlines()
        right = ", ".join(str(column + 1) for column in mistake["right"])
        shown.append([*drawn, f"plays {mistake['move'] + 1}", f"right: {right}"])
    lines = ["   ".join(f"{part:16}" for part in line).rstrip() for line in zip(*shown, strict=True)]
    return "\n".join([f"{said} Those with the fewest stones\n(X moved first):\n\n```text", *lines, "```"])
