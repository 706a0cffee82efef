"""A tutorial, played as it stands: its commands at a real shell, its answers at the real Amanu, and after each what the
page says one sees.

In a `console` block a line that begins with `$` is a command, and what follows a `›` is typed at Amanu: a prompt, words
at a question, or the row of a question, which its digit chooses (`  2. Reject`, then `  › Reject`); `(a)` is a key that
is pressed. All other lines are shown, in this order; `…` stands for any text, alone on a line for any lines. A command
at which nothing is typed shows the lines of the page and no other. Other blocks are files, named in the line above
("Save this as `stock.py`").
"""

import os
import re
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.cli_process import AMANU
from support.pseudo_terminal import PseudoTerminal
from support.warm_process import warm

PROMPT = "tutorial$ "
_BLOCK = re.compile(r"([^\n]*)\n\n```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SAVED = re.compile(r"[Ss]ave this as `([^`]+)`")
_ROW = re.compile(r"[❯ ] (\d)\. (.+?)(?:   .*)?$")
_KEY = re.compile(r"\((\w)\)$")
_VARIES = re.compile(r"…|\d+(?:\.\d+)? m?s\b")
"""Text that is left out, and times."""


@dataclass(frozen=True)
class File:
    name: str
    text: str


@dataclass(frozen=True)
class Command:
    text: str
    shown: list[str]


def steps(page: str) -> list[File | Command]:
    found: list[File | Command] = []
    for above, language, text in _BLOCK.findall(page):
        if (saved := _SAVED.search(above)) is not None:
            found.append(File(saved[1], text))
        for line in text.splitlines() if language == "console" else ():
            if line.startswith("$ "):
                found.append(Command(line[2:], []))
            elif isinstance(found[-1], Command):
                found[-1].shown.append(line)
    return found


class Reader:
    """Plays a page in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (commands := folder / "bin").mkdir()
        (amanu := commands / "amanu").write_text(f'#!/bin/sh\nexec {shlex.join(warm(AMANU))} "$@"\n')
        amanu.chmod(0o755)
        path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]])
        shell = ["bash", "--norc", "--noprofile", "--noediting"]
        self._terminal = PseudoTerminal(shell, cwd=folder, PATH=path, PS1=PROMPT, PYTHONDONTWRITEBYTECODE="1")
        self._place = folder

    def plays(self, page: str) -> None:
        try:
            self._terminal.sees(PROMPT)
            for step in steps(page):
                if isinstance(step, File):
                    (self._place / step.name).write_text(step.text)
                else:
                    self._runs(step)
            assert "(scripted model:" not in self._terminal.shown, self._terminal.shown
            self._terminal.types("exit\n")
            self._terminal.leaves()
        finally:
            self._terminal.close()

    def _runs(self, command: Command) -> None:
        self._terminal.types(f"{command.text}\n")
        self._terminal.sees("\n")
        if any("›" in line for line in command.shown):
            for part in self._parts(command.shown):
                self._terminal.sees_match(part)
            self._terminal.sees(PROMPT)
            return
        shown = self._terminal.sees_match(re.escape(PROMPT))
        assert re.fullmatch(whole(command.shown), shown), f"$ {command.text}\n{shown}\nis not as on the page"
        if command.text.startswith("cd "):
            self._place = self._folder / command.text.removeprefix("cd ")

    def _parts(self, lines: list[str]) -> Iterator[str]:
        """Waits for each line in turn, and types what is to be typed between them."""
        digits: dict[str, str] = {}
        for line in lines:
            question, typing, answer = line.partition("›")
            if (row := _ROW.match(line)) is not None:
                digits[row[2]] = row[1]
            elif line.startswith("  › "):
                time.sleep(0.8)  # sooner does not count
                self._terminal.types(digits[answer.strip()])
                yield pattern(line.strip())
                digits = {}
            elif (key := _KEY.match(line)) is not None:
                time.sleep(0.8)  # sooner does not count
                self._terminal.types(key[1])
            elif typing and not question:
                yield "sends"  # the status line of a chat that takes prompts
                self._terminal.types(f"{answer.strip()}\r")
            elif typing:
                yield pattern(question.strip())
                time.sleep(0.6)  # sooner does not count
                self._terminal.types(f"{answer.strip()}\r")
            elif line.strip(" …"):
                yield pattern(line.strip())


def whole(lines: list[str]) -> str:
    """All that a command prints."""
    return "".join(r"(?:.*\n)*?" if line.strip() == "…" else rf"{pattern(line)}\s*\n" for line in lines)


def pattern(line: str) -> str:
    at, parts = 0, list[str]()
    for varies in _VARIES.finditer(line):
        parts += [re.escape(line[at : varies.start()]), ".*?" if varies[0] == "…" else r"\d+(?:\.\d+)? m?s\b"]
        at = varies.end()
    return "".join([*parts, re.escape(line[at:])])
