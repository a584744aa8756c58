"""A game as people write it. In: 4453, "4, 4, 5, 3", "1. 4 4 2. 5 3", ddec, or a link to the page. Out: 4453.

The page's field reads the same and more (`web/page/paste.js`).
"""

import re

_SEPARATORS = re.compile(r"[\s,;.|/\-()\[\]{}\"']")
_LETTERS = str.maketrans("abcdefg", "1234567")


def read(text: str) -> str:
    """The moves alone; `rules.from_moves` says whether they are legal. Raises ValueError for a wrong move number."""
    text = text.rpartition("#")[2].lower()
    before, *rest = re.split(r"(\d+)\.", text)
    if not before.strip() and rest[:1] == ["1"] and rest[1].strip():  # otherwise periods are separators
        for expected, number in enumerate(rest[::2], start=1):
            if int(number) != expected:
                raise ValueError(f"move number {number}. comes where {expected}. is expected")
        text = "".join(rest[1::2])
    moves = _SEPARATORS.sub("", text)
    return moves.translate(_LETTERS) if moves.isalpha() else moves
