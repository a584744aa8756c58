"""A Connect 4 network on a phone or a small computer, shown in Python: pip install ai-edge-litert

python -m distill.export models/reference/pillar --formats litert --out app
python litert_client.py app/saved_model
"""

import json
import sys
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter

if len(sys.argv) < 2:
    made = "python -m distill.export models/reference/pillar --formats litert --out app"
    print(f"usage: litert_client.py FOLDER; to have app/saved_model for one: {made}", file=sys.stderr)
    sys.exit(2)
folder = Path(sys.argv[1])
examples = json.loads((folder / "examples.json").read_text())
boards = np.array([example["board"] for example in examples], np.int8)  # row 0 on top, +1 to move, -1 opponent, 0 empty

runner = Interpreter(str(folder / "model.tflite")).get_signature_runner("serving_default")
answer = runner(board=boards)  # valid until the next call

difference = np.abs(answer["policy"] - [example["policy"] for example in examples]).max()
print(f"the first board is empty: column {answer['move'][0] + 1} of 7")
print(f"{len(boards)} boards answered as examples.json says" if difference < 1e-5 else f"differs by {difference}")
