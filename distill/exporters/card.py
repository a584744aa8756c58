"""The model card: what an app developer or a curious reader needs to know about a network, on one page.

It starts with the front matter that the Hugging Face Hub reads, YAML between two lines of three dashes.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from distill.common import provenance
from distill.exporters import comparison, quantized
from distill.exporters.conversion import Converted
from distill.exporters.formats import FORMATS
from distill.exporters.run_facts import GRADES, TEACHER
from distill.game import rules
from distill.networks import finding

TAGS = {"litert": "tflite", "onnx": "onnx"}
"""Format → its tag on the Hub."""

TEMPLATE = Path(__file__).with_suffix(".md")
"""The card with the names of its parts in braces."""
_RESULT = """  - task: {{type: reinforcement-learning, name: Connect 4}}
    dataset: {{type: connect-4-graded-boards, name: "{boards}, {half} half"}}
    metrics:
    - {{type: optimal, name: "moves that are best, %", value: {optimal:.1f}}}
    - {{type: outcome, name: "moves that keep the win, draw or loss, %", value: {outcome:.1f}}}"""
_VALUE = "- `value` float32 (B,), expected outcome in [-1, 1] for the side to move\n"
_INT8 = """
The files in 8 bits sometimes choose other columns. What their moves lose against the network's, in points, on boards
of the dev half as stored and mirrored, paired (negative: gained):

| file | set | boards | the same move | optimal lost | outcome lost |
|---|---|---|---|---|---|
{rows}
"""
_NO_FIGURES = "None recorded beside the network; `python -m distill.evaluate` measures them."
_TOP1 = {
    "top1_all": "top-1 accuracy against the teacher's labels, on {rows}",
    "top1_unseen": "the same, on boards outside its training table",
    "top1_first_19": "the same, on the first 19 rows of each game",
}
_SETS = {
    "midgame": "boards with 10-16 stones from mixed play, including networks (`midgame`)",
    "heldout": "boards with 10-16 stones from games in which no player of this project took part (`heldout`)",
}
_SHOWN_ELSEWHERE = {"arch", "parameters", "restart", "out", GRADES, TEACHER, *_TOP1}


def write(about: Mapping[str, Any], run: Mapping[str, Any], converted: Mapping[str, Converted], folder: Path) -> str:
    """The card as Markdown.

    Args:
      about: `origin.facts` of the network.
      run: `run_facts.facts_of_run`, or other facts by name.
      converted: what was written, by format.
      folder: where the files are.
    """
    tags = ["connect-4", "board-games", "distillation", *(tag for name, tag in TAGS.items() if name in converted)]
    versions = provenance.versions("tensorflow", "keras")
    return TEMPLATE.read_text(encoding="utf-8").format(
        **{"commit": "unknown", **about},
        library="onnx" if "onnx" in converted else "tensorflow",
        tags="\n".join(f"- {tag}" for tag in tags),
        index="\n".join(_index(about["network"], run.get(GRADES))),
        name="" if about["network"] == about["arch"] else f"\nIts name in this project is `{about['network']}`.",
        versions=", ".join(f"{name} {version}" for name, version in versions.items()),
        files="\n".join(_files(converted, folder)),
        boards=comparison.CHECKED_BOARDS,
        measure=comparison.MEASURE,
        int8=_int8(converted),
        examples="\n\n".join(_examples(converted)),
        value=_VALUE if about["value_head"] else "",
        training="\n".join(_training(run)),
        figures="\n".join(_figures(run)) or _NO_FIGURES,
        mistakes="".join(_mistakes(run.get(GRADES, {}).get("mistakes", []))),
    )


def _files(converted: Mapping[str, Converted], folder: Path) -> Iterator[str]:
    for name, found in converted.items():
        place = folder / FORMATS[name].file
        difference = "see below" if found.losses else f"{found.difference:.1e}"
        file = f"{place.name}/" if place.is_dir() else place.name
        yield f"| `{file}` | {FORMATS[name].title} | {finding.size(place)} | {difference} |"


def _index(name: str, grades: Mapping[str, Any] | None) -> Iterator[str]:
    """The Hub's list of results, in percent; nothing without grades."""
    if grades:
        yield f"model-index:\n- name: {json.dumps(name)}\n  results:"
        for boards, found in grades["sets"].items():
            shares = {metric: 100 * found[metric]["mean"] for metric in ("optimal", "outcome")}
            yield _RESULT.format(boards=boards, half=grades["half"], **shares)


def _int8(converted: Mapping[str, Converted]) -> str:
    rows = [
        f"| `{FORMATS[name].file}` | `{boards}` | {loss.boards:,} | {loss.same:.1%} "
        f"| {quantized.points(loss.optimal, loss.optimal_margin)} "
        f"| {quantized.points(loss.outcome, loss.outcome_margin)} |"
        for name, found in converted.items()
        for boards, loss in found.losses.items()
    ]
    return _INT8.format(rows="\n".join(rows)) if rows else ""


def _examples(formats: Iterable[str]) -> Iterator[str]:
    chosen = [FORMATS[name] for name in formats]
    for format in chosen:
        if format.example:
            yield f"{format.title}:\n\n```python\n{format.example.strip()}\n```"
    if in_8_bits := [f"`{format.file}`" for format in chosen if format.int8]:
        yield f"{' and '.join(in_8_bits)}: the same lines with this name."


def _training(run: Mapping[str, Any]) -> Iterator[str]:
    if TEACHER in run:
        yield f"{run[TEACHER]}.\n"
    rows = {name: value if isinstance(value, list | tuple) else [value] for name, value in run.items()}
    plain = [name for name, row in rows.items() if row and all(isinstance(each, str | int | float) for each in row)]
    shown = [name for name in plain if name not in _SHOWN_ELSEWHERE]
    yield "| setting or count | |\n|---|---|" if shown else "Not recorded beside the network."
    for name in shown:
        text = ", ".join(map(str, rows[name])).replace("|", "\\|").replace("\n", " ")
        yield f"| {name} | {text} |"


def _figures(run: Mapping[str, Any]) -> Iterator[str]:
    rows = run.get("validation_rows_from", "rows it was not trained on")
    for name, text in _TOP1.items():
        if run.get(name):
            yield f"- {run[name]:.1%} {text.format(rows=rows)} (`distill.train`)"
    if grades := run.get(GRADES):
        yield f"- by `python -m distill.evaluate {grades['player']}`, {grades['half']} half:"
        for name, graded in grades["sets"].items():
            best, keep = (
                f"{share['mean']:.1%} ({share['low']:.1%} to {share['high']:.1%})"
                for share in (graded["optimal"], graded["outcome"])
            )
            yield f"  - {_SETS[name]}: {best} of its moves are best, {keep} keep the win, draw or loss"


def _mistakes(mistakes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The mistakes that `distill.evaluate` recorded, each with its board."""
    if mistakes:
        yield "\n\nThe costliest mistakes that `distill.evaluate` found; both sides play perfectly after them:"
    for one in mistakes:
        position = rules.Position(one["current"], one["mask"])
        best = " or ".join(str(column + 1) for column in one["best"])
        yield (
            f"\n\n{'XO'[position.ply % 2]} is to move, chose column {one['played'] + 1} of 7 and "
            f"{_outcome(one['score'])}; column {best} {_outcome(one['best_score'])}\n\n"
        )
        yield textwrap.indent(rules.draw(position), "    ")


def _outcome(score: int) -> str:
    """The result under perfect play, from the score of the side to move."""
    return "wins" if score > 0 else "draws" if score == 0 else "loses"
