"""The model card: everything an app developer or a curious reader needs to know of a network, on one page.

It begins with the front matter that the Hugging Face Hub reads, YAML between lines of three dashes; the Hub's card
specification has the names of its fields.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras

from distill import networks
from distill.common import file_hash, provenance
from distill.exporters import comparison, origin, quantized
from distill.exporters.run_facts import GRADES, TEACHER
from distill.exporters.weaknesses import Tally, Weaknesses
from distill.game import rules
from distill.networks import finding, heads

_TOLD_ELSEWHERE = {"arch", "parameters", "restart", "out", GRADES, TEACHER}
_RESULTS = {
    "top1_all": "top-1 accuracy against the teacher's labels, on {rows}",
    "top1_unseen": "the same, on boards that are not in the table it learned from",
    "top1_first_19": "the same, on the first 19 rows of each game",
}

_BOARDS = {
    "midgame": "boards with 10-16 stones from mixed play, a network's among it (`midgame`)",
    "heldout": "boards with 10-16 stones from games in which no player of this project took part (`heldout`)",
}


@dataclass(frozen=True, kw_only=True)
class File:
    """A published model.

    Attributes:
      name: of the file or folder, beside the card.
      title: its format.
      size: for people.
      difference: the largest from the network, as `comparison` measures it.
      losses: in grades, by set, of a file in 8 bits, whose difference says little.
      lines: Python that loads it and asks for a move, run in the card's folder.
    """

    name: str
    title: str
    size: str
    difference: float
    lines: str
    losses: Mapping[str, quantized.Loss] = field(default_factory=dict)


def write(
    core: keras.Model,
    facts: Mapping[str, Any],
    files: Sequence[File],
    weaknesses: Weaknesses,
    network: Path | None = None,
) -> str:
    """The card as Markdown. `facts` are those of `run_facts`, or any others by name; `network` is its `.keras` file."""
    name = origin.name_of(core, network)
    sections = [
        _front_matter(name, facts, files, network),
        _head(core, name, files),
        *_lost(files),
        "## Load it\n\nIn this folder:\n\n" + "\n\n".join(_examples(files)) + "\n\n" + _SERVING,
        _contract(core),
        _training(facts),
        _figures(facts),
        _weaknesses(weaknesses, facts.get(GRADES, {}).get("mistakes", [])),
        "## Licence\n\nApache-2.0, like the project that made it. The weights were learned from games that its own "
        "programs played;\nno data of others and no solver went into them.",
    ]
    return "\n\n".join(sections) + "\n"


TAGS = {"litert": "tflite", "onnx": "onnx"}
"""What the Hub calls a format that a title begins with."""


def _front_matter(name: str, facts: Mapping[str, Any], files: Sequence[File], network: Path | None) -> str:
    titles = [file.title.split()[0].lower() for file in files]
    tags = [tag for title, tag in TAGS.items() if title in titles]
    lines = [
        "license: apache-2.0",
        f"library_name: {'onnx' if 'onnx' in tags else 'tensorflow'}",
        "pipeline_tag: reinforcement-learning",
        "tags:",
        *(f"- {tag}" for tag in ("connect-4", "board-games", "distillation", *tags)),
        *([f"{finding.MADE_OF}: {file_hash(network)}"] if network else []),
    ]
    if grades := facts.get(GRADES):
        lines += ["model-index:", f"- name: {json.dumps(name)}", "  results:"]
        for boards, graded in grades["sets"].items():
            lines += _result(f"{boards}, {grades['half']} half", graded)
    return "\n".join(["---", *lines, "---"])


def _result(title: str, graded: Mapping[str, Any]) -> list[str]:
    """One set as the Hub's list of results has it, in percent."""
    lines = [
        "  - task:",
        "      type: reinforcement-learning",
        "      name: Connect 4",
        "    dataset:",
        "      type: connect-4-graded-boards",
        f"      name: {json.dumps(title)}",
        "    metrics:",
    ]
    for metric, meaning in (("optimal", "moves that are best"), ("outcome", "moves that keep the win, draw or loss")):
        lines += [f"    - type: {metric}", f"      name: {json.dumps(f'{meaning}, %')}"]
        lines.append(f"      value: {100 * graded[metric]['mean']:.1f}")
    return lines


def _head(core: keras.Model, name: str, files: Sequence[File]) -> str:
    arch = networks.arch_of(core)
    also = "" if name == arch else f"\nIn the project that made it its name is `{name}`."
    versions = ", ".join(f"{k} {v}" for k, v in provenance.versions("tensorflow", "keras").items())
    rows = [f"| `{file.name}` | {file.title} | {file.size} | {_difference(file)} |" for file in files]
    return f"""# Connect 4 network `{arch}`

Chooses a column for a position in one forward pass, without searching; it was trained to choose as a search does.{also}
{core.count_params():,} parameters. Written at commit {provenance.commit() or "unknown"} with
{versions}.

| file | format | size | largest difference from the network |
|---|---|---|---|
{chr(10).join(rows)}

Each file was compared on {comparison.CHECKED_BOARDS} boards; a difference is one {comparison.MEASURE}.
`examples.json` holds boards with the outputs that a client must get; `sha256sum -c SHA256SUMS` verifies the files.
`export.json` has the version, the commit and the hash of the network; each model file holds the same."""


def _difference(file: File) -> str:
    return "see below" if file.losses else f"{file.difference:.1e}"


def _lost(files: Sequence[File]) -> Iterator[str]:
    """What the files in 8 bits lose, where there are any."""
    rows = [
        f"| `{file.name}` | `{name}` | {loss.boards:,} | {loss.same:.1%} "
        f"| {quantized.points(loss.optimal, loss.optimal_margin)} "
        f"| {quantized.points(loss.right_class, loss.class_margin)} |"
        for file in files
        for name, loss in file.losses.items()
    ]
    if rows:
        yield f"""The files in 8 bits choose other columns now and then. What their moves lose against the network's,
in points, on boards of the dev half as stored and mirrored, paired (below 0: gained):

| file | boards | how many | the same move | optimal lost | outcome lost |
|---|---|---|---|---|---|
{chr(10).join(rows)}"""


def _examples(files: Sequence[File]) -> Iterator[str]:
    for file in files:
        if not file.losses:
            yield f"{file.title}:\n\n```python\n{file.lines.strip()}\n```"
    if in_8_bits := [f"`{file.name}`" for file in files if file.losses]:
        yield f"{' and '.join(in_8_bits)}: the same lines with this name."


_SERVING = """For TensorFlow Serving this folder is the base path (`--model_base_path`); `1/` carries warm-up requests.
A SavedModel is code: load only those you trust."""


def _contract(core: keras.Model) -> str:
    value = (
        "\n- `value` float32 (B,), expected outcome in [-1, 1] for the side to move" if heads.has_value(core) else ""
    )
    return f"""## Inputs and outputs

The same in every format, by name. `board`: int8 (B, 6, 7), any B from 1, row 0 on top, +1 side to move, -1 opponent,
0 empty. Boards are not checked: every stone must rest on another or on the bottom row, and the side to move must have
as many stones as the opponent, or one fewer.

- `logits` float32 (B, 7), -1e9 in place of full columns
- `policy` float32 (B, 7), sums to 1, exactly 0 on full columns
- `move` int32 (B,), the best column 0-6, ties to the centre and then the lower column{value}

A full board gives policy 0 and move -1. Games that are already won are not told apart: ask while the game goes on."""


def _training(facts: Mapping[str, Any]) -> str:
    shown = {k: v for k, v in facts.items() if k not in _TOLD_ELSEWHERE | set(_RESULTS) and _is_plain(v)}
    text = "## Training data and recipe\n\n"
    if TEACHER in facts:
        text += f"{facts[TEACHER]}.\n\n"
    if not shown:
        return text + "Not recorded beside the network."
    table = "\n".join(f"| {name} | {_cell(value)} |" for name, value in shown.items())
    return text + f"| setting or count | |\n|---|---|\n{table}"


def _is_plain(value: Any) -> bool:
    items = value if isinstance(value, list | tuple) else [value]
    return all(isinstance(item, str | int | float) for item in items) and value != []


def _cell(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else f"{value}"
    return text.replace("|", "\\|").replace("\n", " ")


def _figures(facts: Mapping[str, Any]) -> str:
    rows = facts.get("validation_rows_from", "rows it was not trained on")
    lines = [
        f"- {facts[name]:.1%} {text.format(rows=rows)} (`distill.train`)"
        for name, text in _RESULTS.items()
        if facts.get(name) and not (name == "top1_first_19" and _are_early(facts))
    ]
    if grades := facts.get(GRADES):
        lines.append(f"- by `python -m distill.evaluate {grades['player']}`, {grades['half']} half:")
        for name, graded in grades["sets"].items():
            optimal, keeps = (
                f"{share['mean']:.1%} ({share['low']:.1%} to {share['high']:.1%})"
                for share in (graded["optimal"], graded["outcome"])
            )
            lines.append(f"  - {_BOARDS[name]}: {optimal} of its moves are best, {keeps} keep the win, draw or loss")
    text = "\n".join(lines) or "None recorded beside the network; `python -m distill.evaluate` measures them."
    return f"## Figures\n\n{text}"


def _are_early(facts: Mapping[str, Any]) -> bool:
    """Whether all rows are among the first of their games, as packed boards are, each a game of its own."""
    return "rows_all" in facts and facts.get("rows_first_19") == facts["rows_all"]


def _weaknesses(found: Weaknesses, mistakes: Sequence[Mapping[str, Any]]) -> str:
    text = f"""## Known weaknesses

It does not look ahead, so it overlooks what a search of two plies sees. In random games,
whose positions are stranger than those of sensible ones:

- a win in one move: taken in {_share(found.wins)} (where another move wins later, passing it by is no mistake)
- a win in one move of the opponent that one column stops: stopped in {_share(found.blocks)}
- a board and its mirror image: mirrored moves in {_share(found.mirrored)}"""
    for title, tally in (("Wins not taken", found.wins), ("Threats not stopped", found.blocks)):
        for position, move in tally.missed:
            text += f"\n\n{title}: {'XO'[position.ply % 2]} is to move and chose column {move + 1} of 7\n\n"
            text += textwrap.indent(rules.draw(position), "    ")
    if mistakes:
        text += "\n\nThe costliest mistakes that `distill.evaluate` found; both sides play perfectly after them:"
    for one in mistakes:
        position = rules.Position(one["current"], one["mask"])
        best = " or ".join(str(column + 1) for column in one["best"])
        text += f"\n\n{'XO'[position.ply % 2]} is to move, chose column {one['played'] + 1} of 7 and "
        text += f"{_outcome(one['score'])}; column {best} {_outcome(one['best_score'])}\n\n"
        text += textwrap.indent(rules.draw(position), "    ")
    return text


def _outcome(score: int) -> str:
    """What a score, from the side to move, says in the end."""
    return "wins" if score > 0 else "draws" if score == 0 else "loses"


def _share(tally: Tally) -> str:
    return f"{tally.found / tally.asked:.1%} of {tally.asked:,} positions" if tally.asked else "no position met"
