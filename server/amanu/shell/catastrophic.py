"""Catastrophic commands that no rule may allow: they destroy a home folder, a disk or a machine."""

import itertools
import os
import re
from collections.abc import Sequence

from amanu.shell.state import State
from amanu.shell.words import Field

_DEVICE = re.compile(r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|dm-|md|mapper/|loop)\S*")
_BOMB = re.compile(
    r"(?<![^\s(){}|&;])([^\s(){}|&;]{1,40})\s{0,9}\(\s{0,9}\)\s{0,9}\{[^{}]{0,200}?\1\s{0,9}\|\s{0,9}\1\s{0,9}&[^{}]{0,200}\}"
)
_SPLIT = re.compile(r"[;&|\n(){}`]+|\$\(")
_TREES = ("rm", "chmod", "chown", "chgrp", "shred", "srm")
_ERASE = ("wipefs", "blkdiscard", "shred", "mkswap", "fdisk", "sfdisk", "parted", "sgdisk", "cryptsetup")
_NARROWING = frozenset({"-name", "-iname", "-path", "-regex", "-newer", "-mtime", "-empty"})
"""Tests of find that keep it from matching everything."""
_QUOTES = r"[\\'\"]*"
_HIT = re.compile(
    r"(?<![\w.-])(?:"
    + "|".join(_QUOTES.join(name) for name in sorted({*_TREES, *_ERASE, "dd", "find", "mkfs"}, reverse=True))
    + rf")(?:(?<=s)\.\w+)?{_QUOTES}(?![\w-])"
)
"""A program that matters here, however its name is quoted."""
_TARGET = re.compile(r">[>|&]?\s{0,9}([\"']?/dev/[^\s;&|()<>`]+)")
_HITS, _WORDS, _MOST = 200, 400, 200  # in a text: names looked at, words after all of them, words after one
_PIECE = 4_000  # characters


def by_words(argv: Sequence[Field], state: State) -> str | None:
    """The sentence why a command is catastrophic; None when it is not. `argv` comes without wrappers."""
    if not argv:
        return None
    name = os.path.basename(argv[0].value or _unquoted(argv[0].raw))  # noqa: PTH119 (text, not a file)
    texts = [word.value if word.value is not None else _unquoted(word.raw) for word in argv[1:]]
    if name == "mkfs" or name.startswith(("mkfs.", "newfs")) or name in _ERASE:
        device = next(filter(_DEVICE.fullmatch, texts), None)
        return f"It erases {device}." if device else None
    if device := next(filter(_DEVICE.fullmatch, _written_files(name, texts)), None):
        return f"It overwrites {device}."
    contents_matter = name not in ("chmod", "chown", "chgrp")
    for text, raw in _affected_trees(name, texts, [_unquoted(word.raw) for word in argv[1:]]):
        whole = _whole_target(text, state, contents_matter)
        if whole is None and raw != text:
            whole = _whole_target(raw, state, contents_matter)
        if whole is not None:
            return f"It would act on {whole}."
    return None


def by_target(path: str) -> str | None:
    """The sentence why writing to a file is catastrophic; None when it is not."""
    return f"It overwrites {path}." if _DEVICE.fullmatch(path) else None


def by_text(line: str, state: State) -> list[tuple[str, str]]:
    """The catastrophic pieces of a line that could not be analyzed, or that another program interprets: (piece,
    why)."""
    pieces = by_bomb(line)
    line = line.replace("\\\n", "  ")
    looked = 0
    end = -1
    for hit in itertools.islice(_HIT.finditer(line), _HITS):
        if hit.start() < end or looked > _WORDS:
            continue  # inside the previous piece, or the text is so long that asking must do
        near = max(0, hit.start() - _PIECE)
        start = max(near, *(line.rfind(separator, near, hit.start()) + 1 for separator in ";&|\n(){}`"))
        stop = _SPLIT.search(line, hit.end(), hit.end() + _PIECE)
        end = stop.start() if stop else min(len(line), hit.end() + _PIECE)
        argv = [Field(None, True, word) for word in line[hit.start() : end].split()][:_MOST]
        looked += len(argv)
        if why := by_words(argv, state):
            pieces.append((line[start:end].strip(), why))
    for target in itertools.islice(_TARGET.finditer(line), _HITS):
        if why := by_target(_unquoted(target[1])):
            pieces.append((target[0], why))
    return pieces


def by_bomb(line: str) -> list[tuple[str, str]]:
    """Fork bombs: functions that call themselves twice, in the background."""
    return [
        (match[0], "It is a fork bomb: it starts copies of itself until the machine stops responding.")
        for match in _BOMB.finditer(line)
    ]


def _written_files(name: str, texts: Sequence[str]) -> Sequence[str]:
    """Arguments of a copying program that it may write to."""
    if name == "dd":
        return [text.removeprefix("of=") for text in texts if text.startswith("of=")]
    return texts if name in ("cp", "mv", "tee", "install") else ()


def _affected_trees(name: str, texts: Sequence[str], raws: Sequence[str]) -> list[tuple[str, str]]:
    """The operands, expanded and as written, that a command deletes, moves or changes with all they contain."""
    operands = [(text, raw) for text, raw in zip(texts, raws, strict=True) if not text.startswith("-")]
    if name == "find":
        deletes = "-delete" in texts or any(os.path.basename(text) == "rm" for text in texts)  # noqa: PTH119
        return operands[:1] if deletes and _NARROWING.isdisjoint(texts) else []
    if name == "mv":
        return operands[:-1]
    return operands if name in _TREES and any(map(_recursive, texts)) else []


def _recursive(option: str) -> bool:
    if option.startswith("--"):
        return len(option) > 2 and "--recursive".startswith(option)
    return option.startswith("-") and option[1:].isalpha() and "r" in option.lower()


def _whole_target(text: str, state: State, contents_matter: bool) -> str | None:
    """What a path covers, when that is the whole of something: a home folder, the file system, a root. The path need
    not exist. With `contents_matter`, the command's folder and the workspace count too."""
    if len(text) > 4096:
        return None
    home = state.context.environment.get("HOME", "")
    expanded = re.sub(r"^(?:~|\$HOME|\$\{HOME\})(?=/|$)", lambda _: home or "/~", text)
    expanded = re.sub(r"^(?:\$PWD|\$\{PWD\}|\$\(pwd\))(?=/|$)", ".", expanded)
    expanded = re.sub(r"/(?:\*|\.\*|\{,\.\}\*)/?$", "/.", expanded)  # all that is in it
    if expanded in ("*", ".*", "{,.}*"):
        expanded = "."
    if any(char in expanded for char in "*?[$"):
        return None
    folder = state.folder or state.context.folder
    path = os.path.normpath(os.path.join(folder, expanded))  # noqa: PTH118 (links are not followed)
    path = "/" + path.lstrip("/")
    if path == "/" or not expanded:
        return "the whole file system" if expanded else None
    if home and path == os.path.normpath(home):
        return "your home folder"
    if path.count("/") == 1 and path != "/tmp":
        return f"all of {path}"
    roots = [str(root) for root in state.context.roots]
    above = any(root.startswith(f"{path}/") for root in roots)
    if above or (contents_matter and (path in roots or (expanded in (".", "..", "./", "../") and "*" not in text))):
        return f"all of {path}"
    return None


def _unquoted(raw: str) -> str:
    return re.sub(r"\\(.)|[\"']", lambda match: match[1] or "", raw)
