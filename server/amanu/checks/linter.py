"""Linters that read a text from standard input and write JSON: one run for each text, no server."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from amanu.checks.catalog import Reads
from amanu.checks.process import CheckerProcess, CheckFailed
from amanu.workspace.diagnostics import message_line
from amanu_protocol.base import LineRange
from amanu_protocol.items import Finding

_MAX_OUTPUT = 8 << 20  # bytes
_MAX_MESSAGE = 2000  # characters of a finding's message
_MAX_FINDINGS = 500


def command_line(reads: Reads, command: Sequence[str], path: Path) -> list[str]:
    """The command that checks its standard input as the file at `path`."""
    return [*command, str(path)] if reads == "eslint" else list(command)


async def lint(reads: Reads, process: CheckerProcess, text: str) -> list[Finding]:
    """Its findings in the text. Raises `CheckFailed`."""
    writing = asyncio.create_task(_write(process, text))
    try:
        output = await _read(process)
    finally:
        writing.cancel()
    try:
        parsed = await asyncio.to_thread(json.loads, output)
    except ValueError:
        raise CheckFailed(await process.end_reason()) from None
    items = _eslint(parsed) if reads == "eslint" else _shellcheck(parsed)
    return [Finding.model_validate(item, by_name=True) for item in items[:_MAX_FINDINGS]]


async def _write(process: CheckerProcess, text: str) -> None:
    try:
        process.stdin.write(text.encode("utf-8", "replace"))
        await process.stdin.drain()
        process.stdin.close()
    except OSError:
        pass  # it ended; its output says why


async def _read(process: CheckerProcess) -> bytes:
    parts: list[bytes] = []
    size = 0
    while data := await process.stdout.read(65536):
        size += len(data)
        if size > _MAX_OUTPUT:
            raise CheckFailed("Its output is too large.")
        parts.append(data)
    return b"".join(parts)


def _eslint(parsed: Any) -> list[dict[str, Any]]:
    """https://eslint.org/docs/latest/use/formatters/#json. A message without a rule and not fatal is about the file
    ("File ignored …"), not its text."""
    return [
        _item("eslint", message, {1: "warning", 2: "error"}, message.get("severity"), message.get("ruleId"))
        for file in _list(parsed)
        for message in _list(file.get("messages"))
        if message.get("ruleId") or message.get("fatal")
    ]


def _shellcheck(parsed: Any) -> list[dict[str, Any]]:
    """https://www.shellcheck.net/wiki/Integration, format `json`."""
    severities = {"error": "error", "warning": "warning", "info": "information", "style": "hint"}
    return [
        _item("shellcheck", comment, severities, comment.get("level"), f"SC{comment.get('code')}")
        for comment in _list(parsed)
    ]


def _item(source: str, item: dict[str, Any], severities: dict[Any, str], severity: Any, code: Any) -> dict[str, Any]:
    line, end = item.get("line"), item.get("endLine")
    first = line if isinstance(line, int) and line > 0 else 1
    return {
        "lines": LineRange.numbered(first, end if isinstance(end, int) else first),
        "severity": severities.get(severity, "error") if isinstance(severity, int | str) else "error",
        "message": message_line(str(item.get("message") or ""))[:_MAX_MESSAGE],
        "source": source,
        "code": str(code or "")[:80],
    }


def _list(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [cast("dict[str, Any]", item) for item in cast("list[Any]", value) if isinstance(item, dict)]
