"""The model card: what an app developer or a curious reader needs to know about a network, on one page.

It is a template over `export.json`: the network's facts, its files, and the results of its run (`results`). `card.md`
is the template, followed by what only some cards have. A card starts with the front matter that the Hugging Face Hub
reads, YAML between two lines of three dashes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from distill.common import file_hash, provenance, run_folder
from distill.common.settings import by_path
from distill.datasets.benchmark import HEADLINES
from distill.exporters import conversion, quantized
from distill.exporters.formats import FORMATS, Format
from distill.networks import finding

_TEMPLATE, *_parts = Path(__file__).with_suffix(".md").read_text(encoding="utf-8").split("%% ")
_PARTS = {part.partition("\n")[0]: part.partition("\n")[2] for part in _parts}
"""Name → text of what only some cards have."""
HUB = "connect4-distill"
"""The organisation on the Hugging Face Hub in which the cards name data sets."""
_TOP1 = {
    "top1_all": "top-1 accuracy against the teacher's labels, on {rows}",
    "top1_unseen": "the same, on boards outside its training table",
    "top1_first_19": "the same, on the first 19 rows of each game",
}
_LEFT_OUT = (*_TOP1, "by_ply", "kind", "out", "schedule.repeat", "prepared", "export", "restart")
"""Facts of a run that stand elsewhere on the card, or say nothing about the network."""


def results(folder: Path | None, metrics: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What the card says of the run in a folder, with the grades in a report there or beside it; without the unknown.

    - `training`: settings and counts by name, as the card lists them.
    - `top1`: top-1 accuracy by the names of _TOP1; `validation_rows_from`: the rows that it was measured on.
    - `grades`: of `distill.evaluate`: `player`, `half`, and by headline set and metric the mean with its interval.
    - `ships`: whether the network ships, known by its hash; of others the card knows no licence.

    Args:
      folder: None: of no run.
      metrics: the results of a run that has not stored them yet. Of a self-play run, whose metrics are those of its
        last iteration, only the length counts.
    """
    record = run_folder.read(folder) if folder else None
    result = (record.result if record else None) or {} if metrics is None else metrics
    if "iteration" in result:
        result = {"iterations": result["iteration"], "minutes that it took": result.get("minutes")}
    unfinished = {"finished": "no, this is the best network so far"} if record else {}
    run = by_path(record.settings if record else {}) | dict(result or unfinished)
    # Settings that were not used are no information.
    training = {name: value for name, value in run.items() if value is not None and name not in _LEFT_OUT}
    name = Path(run.get("out") or "").name
    shipped = provenance.shipped(f"models/{finding.REFERENCE}/{name}/{finding.BEST}")
    ours = folder is not None and shipped is not None and file_hash(folder / finding.BEST) == file_hash(shipped)
    ships = ours and f"purpose {name}" in _PARTS
    if ships and training:
        training.setdefault("commands", f"pipelines/reference.sh {name}")
    known = {
        "training": training,
        "top1": {name: run[name] for name in _TOP1 if run.get(name) is not None},
        "validation_rows_from": run.get("validation_rows_from"),
        "grades": _grades(folder) if folder else None,
        "ships": ships,
    }
    return {name: value for name, value in known.items() if value is not None}


def _grades(folder: Path) -> dict[str, Any] | None:
    """The grades of this network in a report in its folder or beside it, recognized by the hash of the graded file."""
    network = folder / finding.BEST
    for report in (folder, folder.parent) if network.is_file() else ():
        result = run_folder.result_of(report / "evaluation")
        for name, graded in result.get("networks", {}).items():
            # A level and a search with this network have its hash, too, but their names are those of no network.
            is_this = graded["network_sha256"] == file_hash(network) and graded["precision"] != "int8"
            if is_this and finding.find(name):
                sets = result["players"][name]["sets"]
                sets = {headline: sets[headline] for headline in HEADLINES if headline in sets}
                if sets:
                    return {"player": name, "half": result["benchmark"]["half"], "sets": sets}
    return None


def write(record: Mapping[str, Any], folder: Path) -> str:
    """The card as Markdown, from the content of `export.json`; the folder has the files, for their sizes."""
    formats = [format for format in FORMATS.values() if format.file in record["files"]]
    return _TEMPLATE.format(
        **{
            **record,
            "library": "onnx" if finding.ONNX in record["files"] else "tensorflow",
            "versions": ", ".join(f"{name} {version}" for name, version in record["versions"].items()),
            "files": "\n".join(_files(record["files"], formats, folder)),
            "boards": conversion.CHECKED_BOARDS,
            "measure": conversion.MEASURE,
            "int8": _int8(record["files"]),
            "programs": "\n".join(_programs(formats)).rstrip(),
            "value": _PARTS["value"] if record["value_head"] else "",
            "guide": _PARTS["guide"].rstrip() if record["value_head"] else "",
            **{name: _of_shipped(name, record) for name in ("purpose", "stages", "walk")},
            "datasets": _of_shipped("datasets", record).format(hub=HUB).rstrip() or "[]",
            "training": f"```json\n{json.dumps(record['training'], indent=1)}\n```",
            "license": "apache-2.0" if record["ships"] else "unknown",
            "index": _index(record),
            "licence": _PARTS["shipped licence" if record["ships"] else "user licence"].rstrip(),
            "figures": "\n".join(_figures(record)) or _PARTS["no figures"].rstrip(),
        }
    )


def _of_shipped(part: str, record: Mapping[str, Any]) -> str:
    """What `card.md` has for this network, if it ships; empty for other networks."""
    return _PARTS.get(f"{part} {record['network']}", "") if record["ships"] else ""


def _index(record: Mapping[str, Any]) -> str:
    """The grades as the Hub's `model-index`: of each headline set the shares of best moves and of results kept."""
    graded = record.get("grades", {})
    results = ""
    for name, shares in graded.get("sets", {}).items():
        means = {metric: f"{shares[metric]['mean']:.4f}" for metric in ("optimal", "outcome")}
        results += _PARTS["result"].format(hub=HUB, name=name, half=graded["half"], **means)
    return _PARTS["index"].format(network=json.dumps(record["network"])) + results if results else ""


def size(place: Path) -> str:
    """The size of a file, or of all files in a folder, as text in KB of 1,000 bytes."""
    return f"{sum(file.stat().st_size for file in (place, *place.rglob('*')) if file.is_file()) / 1000:,.0f} KB"


def _files(written: Mapping[str, Any], formats: Sequence[Format], folder: Path) -> Iterator[str]:
    for format in formats:
        place = folder / format.file
        difference = "see below" if format.int8 else f"{written[format.file]['difference']:.1e}"
        file = f"{format.file}/" if place.is_dir() else format.file
        yield f"| `{file}` | {format.title} | {size(place)} | {difference} |"


def _programs(formats: Sequence[Format]) -> Iterator[str]:
    """For each kind of file that was written, lines that load it."""
    for title in ("SavedModel", "LiteRT", "ONNX", "Kaggle"):
        files = [format.file for format in formats if format.title.startswith(title)]
        if files:
            also = "".join(f", also `{file}`" for file in files[1:])
            yield _PARTS[title].replace("{also}", also).replace("FILE", files[0])


def _int8(written: Mapping[str, Any]) -> str:
    rows = [
        f"| `{name}` | `{boards}` | {loss['boards']:,} | {loss['same']:.1%} "
        f"| {quantized.points(loss, 'optimal')} | {quantized.points(loss, 'outcome')} |"
        for name, converted in written.items()
        for boards, loss in converted["losses"].items()
    ]
    return _PARTS["int8"].format(rows="\n".join(rows)) if rows else ""


def _figures(record: Mapping[str, Any]) -> Iterator[str]:
    rows = record.get("validation_rows_from", "rows it was not trained on")
    for name, share in record["top1"].items():
        yield f"- {share:.1%} {_TOP1[name].format(rows=rows)}"
    if grades := record.get("grades"):
        yield f"- by `python -m distill.evaluate {grades['player']}`, {grades['half']} half:"
        of_boards = "`{}`, {units:,} boards: {mean:.1%} ({low:.1%} to {high:.1%}) of its moves are best".format
        keep = "{mean:.1%} ({low:.1%} to {high:.1%}) keep the win, draw or loss".format
        for name, graded in grades["sets"].items():
            yield f"  - {of_boards(name, **graded['optimal'])}, {keep(**graded['outcome'])}"
