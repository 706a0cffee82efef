"""A small grep, run as a process of its own (`python -I -S grep_worker.py`) where no ripgrep is: an expression that
takes for ever can then be killed, and the daemon's loop goes on meanwhile. Standard library only.

Input: one line of JSON `{"pattern", "fixed", "ignoreCase", "context", "maxColumns", "perFile"}`, then either paths
relative to the current folder, each ended by NUL, or (`"text": true`) a text to search. Output as ripgrep's with
`--null --no-heading --line-number`: `path NUL line : text` for a match, `-` for context, `--` between groups. With
`"notUtf8": true` only the paths, each ended by NUL, of text files that are not UTF-8.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

_BIGGEST = 20 * 1024 * 1024
_BIGGEST_NAMED = 512 * 1024 * 1024  # of the only file
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def main() -> int:
    """Exit code 0: found · 1: nothing found · 2: the expression is wrong (its fault on stderr)."""
    options: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    if options.get("notUtf8"):
        names = [path for path, data in _files(sys.stdin.buffer.read().split(b"\0")[:-1]) if _is_not_utf_8(data)]
        sys.stdout.buffer.writelines(os.fsencode(name) + b"\0" for name in names)
        return 0 if names else 1
    pattern = re.escape(options["pattern"]) if options["fixed"] else options["pattern"]
    flags = re.MULTILINE | (re.IGNORECASE if options["ignoreCase"] else 0)
    try:
        expression = re.compile(pattern, flags)
        raw = re.compile(pattern.encode(), flags) if pattern.isascii() else None
    except (re.error, RecursionError, OverflowError) as error:
        print(f"{error}", file=sys.stderr)
        return 2
    any_match = False
    if options.get("text"):
        files = iter([("", sys.stdin.buffer.read())])
    else:
        files = _files(sys.stdin.buffer.read().split(b"\0")[:-1])
    literal = options["pattern"].encode() if options["fixed"] and not options["ignoreCase"] else None
    for path, data in files:
        if literal is not None and literal not in data and data[:2] not in (b"\xff\xfe", b"\xfe\xff"):
            continue
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        if raw is not None and data.isascii() and raw.search(data) is None:
            continue
        text = _decode(data)
        if text is not None:
            any_match |= _search(path, text, expression, options)
    return 0 if any_match else 1


def _files(paths: list[bytes]) -> Iterator[tuple[str, bytes]]:
    """Each file's bytes; opened below a handle of its folder, which was reached without following a link."""
    folder_name, folder = None, -1
    biggest = _BIGGEST_NAMED if len(paths) == 1 else _BIGGEST
    for path in paths:
        parent, _, name = path.rpartition(b"/")
        try:
            if parent != folder_name:
                if folder >= 0:
                    os.close(folder)
                folder, folder_name = -1, None
                folder, folder_name = _folder(parent), parent
            handle = os.open(name, _OPEN, dir_fd=folder)
        except OSError:
            continue
        try:
            parts: list[bytes] = []
            size = 0
            while size <= biggest and (part := os.read(handle, 1 << 18)):
                parts.append(part)
                size += len(part)
                if len(part) < 1 << 18:
                    break
            data = b"".join(parts)
        except OSError:
            continue
        finally:
            os.close(handle)
        if size <= biggest:
            yield os.fsdecode(path), data


def _folder(path: bytes) -> int:
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    for part in path.split(b"/") if path else ():
        try:
            below = os.open(part, _OPEN | os.O_DIRECTORY, dir_fd=folder)
        finally:
            os.close(folder)
        folder = below
    return folder


def _decode(data: bytes) -> str | None:
    """None for binary."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace").replace("\r\n", "\n")
    if b"\0" in data:
        return None
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")


def _is_not_utf_8(data: bytes) -> bool:
    if data.isascii() or b"\0" in data or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _search(path: str, text: str, expression: "re.Pattern[str]", options: dict[str, Any]) -> bool:
    if expression.search(text) is None:
        return False
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    hits: list[int] = []
    for number, line in enumerate(lines):
        if expression.search(line):
            hits.append(number)
            if len(hits) >= options["perFile"]:
                break
    context, last, out = options["context"], -1, sys.stdout.buffer
    matching = set(hits)
    for hit in hits:
        start = max(hit - context, last + 1, 0)
        if context and last >= 0 and start > last + 1:
            out.write(b"--\n")
        end = min(hit + context, len(lines) - 1)
        for number in range(start, end + 1):
            if number > hit and number in matching:
                break  # its own turn comes
            mark = ":" if number in matching else "-"
            line = lines[number][: options["maxColumns"]]
            out.write(os.fsencode(path) + f"\0{number + 1}{mark}{line}\n".encode("utf-8", "replace"))
            last = number
    return bool(hits)


if __name__ == "__main__":
    sys.exit(main())
