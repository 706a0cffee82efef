"""Who speaks after a reply without calls, told from how it ends: the form of its last lines, and phrases of eight
languages (`ending_phrases.py`). `python -m bench.endings` measures how often that is enough. In doubt it is the user:
a needless "continue" annoys more than a word of the user's costs."""

import re
from functools import cache
from typing import Literal

from amanu.agent.ending_phrases import ENDING_PHRASES, EndingPhrases

Speaker = Literal["model", "user"]
_Expression = Literal["now", "handed_over", "conditional"]
_EXPRESSIONS: tuple[_Expression, ...] = ("now", "handed_over", "conditional")

LONGEST_ANNOUNCEMENT = 400
"""Characters of a last paragraph that can still announce the next step, in any language."""
LONGEST_READ = 2_000
"""The number of characters read at the end of the last paragraph: enough for its ending, and quick for any reply."""
SHORTEST_ANNOUNCEMENT = 3
"""Words of a last sentence that can be an announcement; "Understood." and "Thank you!" are not."""

_QUESTION = ("?", "？", "؟")
_BROKEN_OFF = (":", "：")
_GOES_ON = ("...", "…")
_SENTENCE = re.compile(r"(?<=[。！？])\s*|(?<=[.!?…])\s+|\n+")
_NO_PROSE = re.compile(r"\s*(?:[-*+•|#>]|\d+[.)]|```|~~~)\s?")


def speaker_by_rule(text: str, *, may_stop_midway: bool) -> Speaker | None:
    """Who speaks after a reply of that text without calls; None when the rules cannot tell. `text` is not blank.
    What only might be an announcement is believed to be one of models that `may_stop_midway`."""
    paragraph = re.split(r"\n\s*\n", text.strip())[-1].strip()
    last_line = paragraph.splitlines()[-1]
    if _NO_PROSE.match(last_line) and not last_line.lstrip().startswith("**"):
        return "user"  # lists, tables, headings and code end answers, not announcements
    plain = re.sub(r"`[^`]*`", "x", paragraph)  # a `?` in code is no question
    plain = plain.strip("*_ ").replace("’", "'").lower()[-LONGEST_READ:]
    if any(mark in plain for mark in _QUESTION):
        return "user"
    sentences = [each.strip("*_ ") for each in _SENTENCE.split(plain) if each.strip("*_ ")]
    if not sentences:
        return "user"  # a line across
    *before, last = sentences
    if _expression("handed_over").search(plain) or _expression("conditional").search(last):
        return "user"
    if _announced().match(last):
        if last.endswith(_BROKEN_OFF) or _expression("now").search(last):
            return "model"
        # Several in a row are a plan, about which the user may have something to say.
        return "model" if may_stop_midway and not any(map(_announced().match, before)) else None
    if len(paragraph) > LONGEST_ANNOUNCEMENT:
        return "user"
    if last.endswith(_BROKEN_OFF):
        return "model" if may_stop_midway else None
    return None if _may_announce(last, plain) else "user"


def prepare() -> None:
    """Compile the expressions, which takes 30 ms. Blocks."""
    for name in _EXPRESSIONS:
        _expression(name)
    _announced()
    _languages()


def _may_announce(last: str, paragraph: str) -> bool:
    """Whether that sentence could be an announcement after all."""
    if last.endswith(_GOES_ON):
        return True
    if last.isascii() and last.endswith((".", "!")) and len(last.split()) < SHORTEST_ANNOUNCEMENT:
        return False
    phrases = _language(paragraph)
    if phrases is None or not last.endswith((".", "!", "。", "！")):
        return True
    return re.search(phrases.ahead, re.sub(phrases.settled, "", last)) is not None


def _language(text: str) -> EndingPhrases | None:
    """The phrases of the language the text is in; None if it is none of ours."""
    found = {phrases: len(known_by.findall(text)) for phrases, known_by in _languages().items()}
    most = max(found, key=lambda phrases: found[phrases])
    return most if found[most] else None


@cache
def _languages() -> dict[EndingPhrases, re.Pattern[str]]:
    return {phrases: re.compile(phrases.known_by) for phrases in ENDING_PHRASES}


@cache
def _expression(name: _Expression) -> re.Pattern[str]:
    """The phrases of this kind in all languages, since the language of a few words is hard to tell."""
    return re.compile("|".join(f"(?:{getattr(phrases, name)})" for phrases in ENDING_PHRASES))


@cache
def _announced() -> re.Pattern[str]:
    """The beginning of a sentence that announces something, in all languages."""
    apart = r"(?:[,.!:，、：\s]+|(?<=[\u3040-\u9fff]))"  # no space between words of Chinese and Japanese
    return re.compile("|".join(f"(?:(?:{each.opening}){apart})*(?:{each.announced})" for each in ENDING_PHRASES))
