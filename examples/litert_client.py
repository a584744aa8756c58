"""Run a Connect 4 network with LiteRT, as on a phone: pip install ai-edge-litert

python examples/litert_client.py models/reference/pillar/saved_model                      # a network that ships
python examples/litert_client.py models/reference/pillar/saved_model model.int8.tflite    # quantized to 8 bits
python -m distill.export models/reference/pillar --formats litert --out app               # writes app/saved_model
"""

import json
import sys
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter

if len(sys.argv) < 2 or not Path(sys.argv[1], "examples.json").is_file():
    made = "python -m distill.export models/reference/pillar --formats litert --out app"
    print(f"usage: litert_client.py FOLDER [FILE]; to write app/saved_model: {made}", file=sys.stderr)
    sys.exit(2)
folder, file = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "model.tflite"
examples = json.loads((folder / "examples.json").read_text())
boards = np.array([example["board"] for example in examples], np.int8)  # row 0: top; +1: side to move, -1: opponent

runner = Interpreter(str(folder / file)).get_signature_runner("serving_default")
answer = runner(board=boards)  # these arrays are valid until the next call

difference = np.abs(answer["policy"] - [example["policy"] for example in examples]).max()
same = sum(answer["move"] == [example["move"] for example in examples])
print(f"the first board is empty: column {answer['move'][0] + 1} of 7")
match = f"{len(boards)} boards match examples.json"
print(match if difference < 1e-5 else f"differs by {difference:.4f}; {same} of {len(boards)} moves are the same")
