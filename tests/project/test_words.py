"""Public text uses the field's words: no phrase of the list below is in it.

* Public text: documents, docstrings and comments, help and messages, the page, recipes, workflows, names of tests. Not:
  dev/LOG.md, whose entries have the words of their day, what runs wrote (reports, notebooks' outputs), and this file.
* The list finds the phrases in an example text, and leaves alone what is meant literally: stray bits, room on a board.
"""

import re
from pathlib import Path

from test_docs import FILES, ROOT

PHRASES = {
    r"one look|looks at the validation": "evaluation",
    r"ask(?:s|ed|ing)? (?:a|the|its|each|every) (?:\w+ )?network|network (?:is|was) asked": "query, evaluate",
    r"needs? no hand|without a hand|by hand\b|at hand\b": "unattended; manually; available",
    r"goes on where|went on where|goes on from": "resumes",
    r"\banew\b|made new": "rebuilt, retrained",
    r"from nothing": "from scratch",
    r"unlike boards|boards unlike": "distinct boards",
    r"--average\b|--init-share|--focus\b|--measure-every|--judge|--first-play|--extra-noise": "today's flag",
    r"matrix form|quick form": "fast CPU kernels",
    r"playout trees?|guided trees?": "UCT tree, PUCT tree",
    r"carry_loss|\babsorb|\bgather_leaves": "propagate proof; expand; backup",
    r"stray (?!bits|bytes?\b)|\bplanted (?:noise|root)": "action noise; expanded",
    r"twelve rooms|\bthe house\b|(?:is|are|was) told of": "package; reported",
    r"exactly best|right class|exact / class": "optimal, outcome",
    r"\bagreement\b": "top-1 accuracy",
    r"\bjudges?\b|\bdecisive\b|foreign boards|foreign games": "grader; critical; held-out",
    r"\bwhoever\b|who always|which is said|among it\b|of which .{1,40} among": "(rewrite)",
}
"""Patterns of what is not said, and what is said instead."""
TEXT = {".py", ".md", ".sh", ".toml", ".yml", ".html", ".js", ".css", ".ipynb", ".pyi", ".cff"}


def found(text: str) -> list[str]:
    """Phrases of the list in a text, with a few words around."""
    patterns = (rf".{{0,30}}(?:{phrase}).{{0,20}}" for phrase in PHRASES)
    return [match for pattern in patterns for match in re.findall(pattern, text, re.IGNORECASE)]


def test_no_phrase_of_the_list_is_in_public_text():
    private = {Path("dev/LOG.md"), Path(__file__).relative_to(ROOT)}
    public = [file for file in FILES if file.suffix in TEXT and file not in private and file.name != "report.md"]
    phrases = {file.as_posix(): found((ROOT / file).read_text(encoding="utf-8")) for file in public}
    assert {file: words for file, words in phrases.items() if words} == {}
    assert len(public) > 300


def test_the_list_finds_phrases_and_leaves_alone_what_is_literal():
    assert len(found("One look. A run that needs no hand goes on where it was, made anew from nothing.")) == 5
    assert found("stray bits, room for an open three, an exact score, the class Rows, foreign bytes") == []
