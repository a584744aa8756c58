"""A trained network becomes a product: the SavedModel, checked in a clean process before it is put in place.

Out: `<folder>/saved_model/` with `1/` (the SavedModel), `examples.json` (boards and outputs to test a client with),
`README.md` (the model card) and `SHA256SUMS`. The folder is replaced as a whole, so a reader finds either the
old model or the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from distill import provenance
from distill.cli import UserError
from distill.game import encoding, rules
from distill.nets import heads, saved

TOLERANCE = 1e-5
"""Largest difference allowed between the network in Keras and its SavedModel, over every output."""
CHECKED_BOARDS = 256
EXAMPLES = 12

# Runs as an app would, with nothing of this project: `python -I` ignores PYTHONPATH and the current folder too.
_CLIENT = """
import sys
import numpy as np
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
outputs = model.signatures["serving_default"](board=tf.constant(np.load(sys.argv[2])))
assert not any(name.split(".")[0] == "distill" for name in sys.modules)
np.savez(sys.argv[3], **{name: tensor.numpy() for name, tensor in outputs.items()})
"""


def publish(core: keras.Model, folder: Path, facts: Mapping[str, Any]) -> float:
    """Write `<folder>/saved_model/` and return the largest difference found, over all outputs of 256 boards.

    Args:
      core: the network with its raw logits.
      folder: the model's folder; made where missing. What it held before stays until the new model is in place.
      facts: lines for the card, by name.

    Raises UserError where the SavedModel does not load alone or differs by more than 1e-5; nothing is changed then.
    """
    if not possible():
        raise UserError("a SavedModel is written with the TensorFlow backend: set KERAS_BACKEND=tensorflow")
    folder.mkdir(parents=True, exist_ok=True)
    for abandoned in folder.glob(".saved_model.*"):  # of a process that was killed
        shutil.rmtree(abandoned)
    workplace = Path(tempfile.mkdtemp(prefix=".saved_model.", dir=folder))
    try:
        new = workplace / "new"
        boards = check_boards()
        saved.write(core, new / "1")
        expected = saved.predict_with(core)(boards)
        difference = largest_difference(expected, _outputs_in_clean_process(new / "1", boards, workplace))
        if not difference <= TOLERANCE:
            raise UserError(f"{folder}: the SavedModel differs from the network by {difference:.1e}, more than 1e-5")
        (new / "examples.json").write_text(_examples(boards, expected), encoding="utf-8")
        (new / "README.md").write_text(_card(core, difference, facts), encoding="utf-8")
        (new / "SHA256SUMS").write_text(_sums(new), encoding="utf-8")
        _replace(new, folder / "saved_model", aside=workplace / "old")
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
    return difference


def possible() -> bool:
    """Whether Keras runs on TensorFlow, which alone writes SavedModels."""
    return bool(keras.backend.backend() == "tensorflow")


def facts_of_run(folder: Path) -> dict[str, Any]:
    """What the files of a training run say about its network, for the card; empty where there are none."""
    facts: dict[str, Any] = {}
    for name in ("config.json", "metrics.json"):
        try:
            stored = json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        facts |= {key: value for key, value in stored.items() if isinstance(value, str | int | float)}
    return facts


def check_boards(number: int = CHECKED_BOARDS) -> NDArray[np.int8]:
    """int8 (number, 6, 7): the empty board, a full one, and random play, half of it with a full column or more."""
    dice = random.Random(0)
    open_boards: list[rules.Position] = []
    blocked: list[rules.Position] = []
    while min(len(open_boards), len(blocked)) < number // 2:
        position = rules.EMPTY
        while not rules.is_over(position):
            some_full = len(rules.legal_columns(position)) < rules.COLUMNS
            (blocked if some_full else open_boards).append(position)
            position = rules.play(position, dice.choice(rules.legal_columns(position)))
    drawn = dice.sample(blocked, number // 2 - 1) + dice.sample(open_boards, number - number // 2 - 1)
    chosen = [rules.EMPTY, *drawn]
    boards = encoding.boards([p.current for p in chosen], [p.mask for p in chosen])
    full = np.where(np.add.outer(np.arange(rules.ROWS) // 2, np.arange(rules.COLUMNS)) % 2, 1, -1)
    return np.concatenate([boards, full[None].astype(np.int8)])


def largest_difference(expected: Mapping[str, NDArray[Any]], found: Mapping[str, NDArray[Any]]) -> float:
    """The largest absolute difference over all outputs, NaN or infinity where one is missing or not a number."""
    if set(expected) != set(found):
        return float("inf")
    return max(float(np.max(np.abs(expected[name] - found[name]))) for name in expected)


def _outputs_in_clean_process(model: Path, boards: NDArray[np.int8], workplace: Path) -> dict[str, NDArray[Any]]:
    given, returned = workplace / "boards.npy", workplace / "outputs.npz"
    np.save(given, boards)
    client = subprocess.run(
        [sys.executable, "-I", "-c", _CLIENT, *(str(path.resolve()) for path in (model, given, returned))],
        cwd=workplace,
        capture_output=True,
        text=True,
    )
    if client.returncode:
        reason = (client.stderr.strip().splitlines() or [f"exit {client.returncode}"])[-1]
        raise UserError(f"{model}: the SavedModel does not load without the project ({reason})")
    with np.load(returned) as outputs:
        return dict(outputs)


def _examples(boards: NDArray[np.int8], outputs: Mapping[str, NDArray[Any]]) -> str:
    """JSON: boards and outputs, the empty and the full board among them."""
    picked = [*np.linspace(0, len(boards) - 1, EXAMPLES).astype(int)]
    lines = [
        json.dumps({"board": boards[i].tolist(), **{name: outputs[name][i].tolist() for name in sorted(outputs)}})
        for i in picked
    ]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _card(core: keras.Model, difference: float, facts: Mapping[str, Any]) -> str:
    rows = {
        "network": core.name,
        "parameters": f"{core.count_params():,}",
        **facts,
        "commit": provenance.commit() or "unknown",
        "versions": ", ".join(f"{k} {v}" for k, v in provenance.versions("tensorflow", "keras").items()),
        "largest difference from the network in Keras": f"{difference:.1e} on {CHECKED_BOARDS} boards",
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    value_line = (
        "\n- `value` float32 (B,), expected outcome in [-1, 1] for the side to move" if heads.has_value(core) else ""
    )
    return f"""# Connect 4 network `{core.name}`

Chooses a column for a position without searching; it was trained to choose as a tree search does.

| | |
|---|---|
{table}

## Use

`1/` is a TensorFlow SavedModel and needs nothing but TensorFlow. Signature `serving_default`, argument `board`: int8
(B, 6, 7), any B, row 0 on top, +1 side to move, -1 opponent, 0 empty. Outputs by name:

- `logits` float32 (B, 7), -1e9 in place of full columns
- `policy` float32 (B, 7), sums to 1, exactly 0 on full columns
- `move` int32 (B,), the best column 0-6, ties to the centre and then the lower column{value_line}

A full board gives policy 0 and move -1. Games that are already won are not told apart: ask only while the game goes on.

```python
import numpy as np, tensorflow as tf
model = tf.saved_model.load("1")  # keep it: its weights live as long as this object
answer = model.signatures["serving_default"](board=tf.constant(np.zeros((1, 6, 7), np.int8)))
print(int(answer["move"][0]))
```

`examples.json` holds boards with the outputs a client must get; `sha256sum -c SHA256SUMS` verifies the files.
"""


def _sums(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files)


def _replace(new: Path, place: Path, aside: Path) -> None:
    """Rename `new` to `place`; what stood there goes aside for that moment, and comes back if the renaming fails."""
    new.chmod(0o755)
    if place.exists():
        os.rename(place, aside)
    try:
        os.rename(new, place)
    except OSError:
        if aside.exists():
            os.rename(aside, place)
        raise
