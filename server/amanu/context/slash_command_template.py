"""The text of a slash command with its arguments filled in, in one pass: nothing that is put in is read as part of the
text again, so neither an argument nor a command's output can run or attach anything.

    Markdown (Claude Code)   $ARGUMENTS  $1 … $9  !`command`  @file      and Gemini CLI's besides
    TOML (Gemini CLI)        {{args}}  !{command}  @{file}

In a command line arguments are quoted for the shell: `{{args}}` is one word, as in Gemini CLI; each word of
`$ARGUMENTS` is one. A text that uses no arguments gets them at its end.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Style = Literal["markdown", "gemini"]

_GEMINI = r"(?P<args>\{\{args\}\})|(?P<open>[!@])\{"
_ARGUMENTS = r"(?P<all>\$ARGUMENTS\b)|\$(?P<number>[1-9])(?!\d)"
_BACKTICKS = r"(?<![\w!`])!`(?P<line>[^`\n]+)`"
_TEMPLATES = {
    "gemini": re.compile(_GEMINI),
    "markdown": re.compile(f"{_GEMINI}|{_ARGUMENTS}|{_BACKTICKS}"),
}
_VALUES = {
    "gemini": re.compile(r"(?P<args>\{\{args\}\})"),
    "markdown": re.compile(rf"(?P<args>\{{\{{args\}}\}})|{_ARGUMENTS}"),
}


@dataclass(frozen=True)
class ShellLine:
    """A command line whose output belongs in its place."""

    command: str


@dataclass(frozen=True)
class FilledTemplate:
    """The text, in order."""

    pieces: Sequence[str | ShellLine]
    """Files to attach are mentions in the text (`@"path"`)."""

    @property
    def lines(self) -> list[ShellLine]:
        return [piece for piece in self.pieces if isinstance(piece, ShellLine)]


@dataclass(frozen=True)
class _Arguments:
    text: str
    style: Style

    @property
    def words(self) -> list[str]:
        try:
            return shlex.split(self.text)
        except ValueError:  # a quote that nothing closes
            return self.text.split()

    def fill(self, text: str, *, quoted: bool) -> str:
        """The text with the arguments in place. `quoted`: for the shell."""
        return _VALUES[self.style].sub(lambda match: self.value(match, quoted=quoted), text)

    def value(self, match: "re.Match[str]", *, quoted: bool) -> str:
        groups = match.groupdict()
        if groups.get("args"):
            return shlex.quote(self.text) if quoted else self.text
        if groups.get("all"):
            return shlex.join(self.words) if quoted else self.text
        index = int(groups["number"]) - 1
        word = self.words[index] if index < len(self.words) else ""
        return shlex.quote(word) if quoted and word else word


def fill(template: str, style: Style, arguments: str, invocation: str) -> FilledTemplate:
    """The template with those arguments. `invocation` is what the user typed: Gemini CLI puts that after a text that
    uses no arguments, Claude Code the arguments alone."""
    values = _Arguments(arguments, style)
    pieces: list[str | ShellLine] = []
    closings = _closings(template)
    position, uses_arguments = 0, False
    while (match := _TEMPLATES[style].search(template, position)) is not None:
        groups, end = match.groupdict(), match.end()
        text = template[position : match.start()]
        if groups["open"] is not None:
            end = closings.get(match.end() - 1, -1)
            if end < 0:  # nothing closes it: it is text
                pieces.append(template[position : match.end()])
                position = match.end()
                continue
            inner = template[match.end() : end - 1].strip()
            uses_arguments |= _VALUES[style].search(inner) is not None
            if groups["open"] == "!":
                pieces += [text, ShellLine(values.fill(inner, quoted=True))]
            else:
                pieces.append(text + _mention(text, values.fill(inner, quoted=False)))
        elif groups.get("line") is not None:
            uses_arguments |= _VALUES[style].search(groups["line"]) is not None
            pieces += [text, ShellLine(values.fill(groups["line"].strip(), quoted=True))]
        else:
            uses_arguments = True
            pieces.append(text + values.value(match, quoted=False))
        position = end
    pieces.append(template[position:])
    if arguments and not uses_arguments:
        pieces.append(f"\n\n{invocation if style == 'gemini' else arguments}")
    return FilledTemplate([piece for piece in pieces if piece])


def _closings(text: str) -> dict[int, int]:
    """Opening brace → behind the one that closes it."""
    closings: dict[int, int] = {}
    opened: list[int] = []
    for match in re.finditer(r"[{}]", text):
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            closings[opened.pop()] = match.end()
    return closings


def _mention(before: str, path: str) -> str:
    space = " " if before and (before[-1].isalnum() or before[-1] in "_@\\") else ""
    return f'{space}@"{path.replace(chr(34), "").replace(chr(10), " ")}"'
