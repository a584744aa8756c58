"""Run a Connect 4 network in any Python program: pip install tensorflow

python examples/savedmodel_client.py                          # a network that ships
python examples/savedmodel_client.py models/cnn/saved_model    # one of your own
"""

import json
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

shipped = Path(__file__).parents[1] / "models/reference/pillar/saved_model"
folder = Path(sys.argv[1]) if len(sys.argv) > 1 else shipped
if not (folder / "examples.json").is_file():
    sys.exit(f"{folder}: no examples.json in it; python -m distill.export models/cnn writes models/cnn/saved_model")
examples = json.loads((folder / "examples.json").read_text())
boards = np.array([example["board"] for example in examples], np.int8)  # row 0: top; +1: side to move, -1: opponent

model = tf.saved_model.load(str(folder / "1"))  # keep a reference: it owns the weights
tensors = model.signatures["serving_default"](board=tf.constant(boards))
answer = {name: tensor.numpy() for name, tensor in tensors.items()}

difference = np.abs(answer["policy"] - [example["policy"] for example in examples]).max()
print(f"the first board is empty: column {answer['move'][0] + 1} of 7")
print(f"{len(boards)} boards match examples.json" if difference < 1e-5 else f"differs by {difference}")
