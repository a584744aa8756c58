"""Behaviour cloning in PyTorch: a network learns the searches' moves and the exact scores grade it.

    pip install torch
    python examples/behaviour_cloning.py

Out: the share of best moves, and of moves that keep the win, draw or loss, on boards of other programs' games: 57.6 %
and 88.6 %.
"""

import pandas as pd
import torch

import distill
from distill.game import rules

rows = pd.read_parquet("data/reference/labels-200").sample(300_000, random_state=0)
boards = torch.from_numpy(distill.boards(*rules.from_keys(rows["key"].to_numpy()))).flatten(1)
visits = torch.tensor(rows["visits"].tolist(), dtype=torch.float32)


def planes(boards):
    return torch.cat([boards == 1, boards == -1], 1).float()


model = torch.nn.Sequential(
    torch.nn.Linear(84, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 7)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in [part for epoch in range(8) for part in torch.randperm(len(boards)).split(512)]:
    loss = torch.nn.functional.cross_entropy(model(planes(boards[batch])), visits[batch] / visits[batch].sum(1, True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def cloned(boards, seeds):
    with torch.no_grad():
        logits = model(planes(torch.from_numpy(boards).flatten(1)))
    return logits.masked_fill(torch.from_numpy(boards[:, 0] != 0), -1e9).argmax(1).numpy()


grades = distill.evaluate_players([cloned], sets="heldout")["cloned"]["heldout"]
print(f"best moves {grades['optimal'].mean:.1%}, results kept {grades['outcome'].mean:.1%}")
