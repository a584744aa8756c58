"""A game as people write it. In: 4453, "4, 4, 5, 3", "1. 4 4 2. 5 3", "Moves: 4! 4 5??", a link to the page. Out: 4453.

The page's field reads the same and more (`web/page/paste.js`); the tests give both the same texts.
"""

import re

LONGEST = 10_000
"""Most characters of a text; a game has 42 moves."""

_LABEL = re.compile(r"^\s*[a-z]+\s*:")
_AROUND = re.compile(r"^\s*(?:\[([^][(){}]*)\]|\(([^][(){}]*)\)|\{([^][(){}]*)\})\s*$")
_COMMENT = re.compile(r"\{[^{}]*\}")
_ANNOTATION = re.compile(r"([0-9a-z])[!?]{1,2}")
_MOVE_NUMBER = re.compile(r"([0-9]{1,2})(\.{1,3}|\))")
_PERIODS = re.compile(r"[^.)]*\.?\s*|\s*[0-9](?:\s*\.\s*[0-9])+\s*\.?\s*")  # separators, or at the end
_SEPARATORS = re.compile(r"[\s,;.|/\-\"']")
_LETTERS = str.maketrans("abcdefg", "1234567")


def read(text: str) -> str:
    """The moves alone; `rules.from_moves` says whether they are legal.

    A word and a colon before the moves, brackets around them, comments in braces and the annotations ! and ? are left
    out. Raises ValueError for a text that is too long, and for numbers that may be moves or move numbers.
    """
    text = text.rpartition("#")[2].lower()
    if len(text) > LONGEST:
        raise ValueError(f"the text has {len(text):,} characters; a game has at most 42 moves")
    text = _AROUND.sub(r"\1\2\3", _LABEL.sub("", text))
    moves = _without_numbers(_ANNOTATION.sub(r"\1", _COMMENT.sub(" ", text)))
    return moves.translate(_LETTERS) if moves.isalpha() else moves


def _without_numbers(text: str) -> str:
    """The moves alone; their numbers count moves, 1. 4 2. 4, or pairs of moves, 1. 4 4 2. 5 or 1. 4 1... 4 2. 5."""
    pieces = _MOVE_NUMBER.split(text)
    before, *parts = (_SEPARATORS.sub("", piece) for piece in pieces[::3])
    if not parts or (_PERIODS.fullmatch(text) and (before or not parts[0])):
        return _SEPARATORS.sub("", text)
    styles, count = [not before, not before], len(before)
    for place, (number, mark, part) in enumerate(zip(pieces[1::3], pieces[2::3], parts, strict=True)):
        styles[0] &= count == int(number) - 1 == place and len(mark) == 1
        styles[1] &= count == 2 * int(number) - 2 + (len(mark) > 1)
        if not any(styles):
            raise ValueError(f"cannot read {number}{mark} as the number of move {count + 1}")
        count += len(part)
    return "".join(parts)
