"""The model card: what an app developer or a curious reader needs to know about a network, on one page.

It starts with the front matter that the Hugging Face Hub reads, YAML between two lines of three dashes. What it tells
of the network's run comes from the files around the network (`facts_of_run`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from distill.common import file_hash, provenance, run_folder
from distill.datasets.benchmark import HEADLINES
from distill.exporters import comparison, quantized
from distill.exporters.conversion import Converted
from distill.exporters.formats import FORMATS
from distill.networks import finding

GRADES = "grades"
"""The fact with the results of `distill.evaluate`: `player`, `half`, and the metrics by headline set."""

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
_OWN_LICENCE = "The author of the network chooses its licence. distill, which wrote this card, is under Apache-2.0."
_NO_FIGURES = "None recorded beside the network; `python -m distill.evaluate` measures them."
_TOP1 = {
    "top1_all": "top-1 accuracy against the teacher's labels, on {rows}",
    "top1_unseen": "the same, on boards outside its training table",
    "top1_first_19": "the same, on the first 19 rows of each game",
}
_LEFT_OUT = (GRADES, *_TOP1, "by_ply", "kind", "out", "plan", "prepared", "export", "restart")
"""Facts of a run that stand elsewhere on the card, or say nothing about the network."""
_MOST_FOLDERS = 3
"""The most folders of games that are listed one by one."""


def facts_of_run(folder: Path) -> dict[str, Any]:
    """What a run's folder records about its network, by name: settings, results, grades.

    Settings and results come from the folder's record; of a self-play run, whose results are those of its
    last iteration, only its length. Grades are added where a report in the folder or beside it is of this network.
    Empty where the folder is not that of a run.
    """
    record = run_folder.read(folder)
    facts, result = (record.settings, record.result or {}) if record else ({}, {})
    if "iteration" in result:
        result = {"iterations": result["iteration"], "minutes that it took": result.get("minutes")}
    grades = _grades(folder)
    return facts | result | ({GRADES: grades} if grades else {})


def _grades(folder: Path) -> dict[str, Any]:
    """The grades of this network in a report in its folder or beside it, recognized by the network's hash."""
    network = folder / finding.BEST
    for report in (folder, folder.parent) if network.is_file() else ():
        found = run_folder.result_of(report / "evaluation")
        for name, player in found.get("players", {}).items():
            sets = {each: player["sets"][each] for each in HEADLINES if each in player.get("sets", {})}
            # A network with a search has a name with @, and its grades are not those of the network.
            if sets and "@" not in name and found.get("networks", {}).get(name) == file_hash(network):
                return {"player": name, "half": found.get("benchmark", {}).get("half"), "sets": sets}
    return {}


def write(
    about: Mapping[str, Any], run: Mapping[str, Any], converted: Mapping[str, Converted], folder: Path, blunders: str
) -> str:
    """The card as Markdown.

    Args:
      about: `formats.facts` of the network.
      run: `facts_of_run`, or other facts by name.
      converted: what was written, by format.
      folder: where the files are.
      blunders: `comparison.blunders` of the network.
    """
    versions, ships = provenance.versions("tensorflow", "keras"), _ships(run)
    return TEMPLATE.read_text(encoding="utf-8").format(
        **{"commit": "unknown", **about},
        library="onnx" if "onnx" in converted else "tensorflow",
        versions=", ".join(f"{name} {version}" for name, version in versions.items()),
        files="\n".join(_files(converted, folder)),
        boards=comparison.CHECKED_BOARDS,
        measure=comparison.MEASURE,
        int8=_int8(converted),
        programs="\n\n".join(_programs(converted)),
        value=_VALUE if about["value_head"] else "",
        training=_training(run),
        license="apache-2.0" if ships else "unknown",
        licence=_SHIPPED_LICENCE if ships else _OWN_LICENCE,
        figures="\n".join(_figures(run)) or _NO_FIGURES,
        blunders=blunders,
    )


def _ships(run: Mapping[str, Any]) -> bool:
    """Whether the run made a network of `models/reference/`; of others the card does not know whose labels they had."""
    out = Path(run.get("out") or "")
    return out.parent == Path("models") / finding.REFERENCE and out.name in _SHIPPED


def _training(run: Mapping[str, Any]) -> str:
    """What the run records that a reader of the card can use."""
    # Settings that were not used are no information.
    facts = {name: value for name, value in run.items() if value is not None and name not in _LEFT_OUT}
    if not facts:
        return "Not recorded beside the network."
    folders = facts.get("data")
    if isinstance(folders, list) and len(folders) > _MOST_FOLDERS:
        facts["data"] = f"{len(folders)} folders, {folders[0]} to {folders[-1]}"
    if _ships(run):
        facts.setdefault("commands", f"pipelines/reference.sh {Path(run['out']).name}")
    return f"```json\n{json.dumps(facts, indent=1)}\n```"


def _files(converted: Mapping[str, Converted], folder: Path) -> Iterator[str]:
    for name, found in converted.items():
        place = folder / FORMATS[name].file
        difference = "see below" if found.losses else f"{found.difference:.1e}"
        file = f"{place.name}/" if place.is_dir() else place.name
        yield f"| `{file}` | {FORMATS[name].title} | {finding.size(place)} | {difference} |"


def _programs(converted: Mapping[str, Converted]) -> Iterator[str]:
    """For each kind of file that was written, lines that load it."""
    for title, lines in _PROGRAMS.items():
        files = [FORMATS[name].file for name in converted if FORMATS[name].title.removesuffix(" int8") == title]
        if files:
            also = "".join(f", also `{file}`" for file in files[1:])
            yield f"{title}{also}:\n\n```python\n{lines.strip().replace('FILE', files[0])}\n```"


def _int8(converted: Mapping[str, Converted]) -> str:
    rows = [
        f"| `{FORMATS[name].file}` | `{boards}` | {loss['boards']:,} | {loss['same']:.1%} "
        f"| {quantized.points(loss, 'optimal')} | {quantized.points(loss, 'outcome')} |"
        for name, found in converted.items()
        for boards, loss in found.losses.items()
    ]
    return _INT8.format(rows="\n".join(rows)) if rows else ""


def _figures(run: Mapping[str, Any]) -> Iterator[str]:
    rows = run.get("validation_rows_from", "rows it was not trained on")
    for name, text in _TOP1.items():
        if run.get(name):
            yield f"- {run[name]:.1%} {text.format(rows=rows)}"
    if grades := run.get(GRADES):
        yield f"- by `python -m distill.evaluate {grades['player']}`, {grades['half']} half:"
        for name, graded in grades["sets"].items():
            best, keep = (
                f"{share['mean']:.1%} ({share['low']:.1%} to {share['high']:.1%})"
                for share in (graded["optimal"], graded["outcome"])
            )
            yield f"  - `{name}`: {best} of its moves are best, {keep} keep the win, draw or loss"
