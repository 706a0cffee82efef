"""A Jupyter notebook as text: its cells with their outputs (nbformat 4)."""

import base64
import binascii
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, cast

MAX_OUTPUT = 4_000
"""Characters of one output: its beginning and its end."""
MAX_TEXT = 100_000
"""Characters of all cells."""
MAX_PICTURES = 8

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_PICTURES = ("image/png", "image/jpeg")
_TEXTS = ("text/plain", "text/markdown", "text/latex", "application/json", "text/html")
"""Forms of one output, the best first."""


@dataclass
class Notebook:
    text: str = ""
    cells: int = 0
    shown_cells: int = 0
    """Those that are in the text; the others had no room."""
    pictures: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Pictures among the outputs, by the names they have in the text."""


@dataclass(frozen=True)
class ShownCell:
    """A cell as text: each part is whole lines, or "" if there are none."""

    marker: str
    source: str
    outputs: str

    @property
    def text(self) -> str:
        return self.marker + self.source + self.outputs


def is_notebook(path: PurePath) -> bool:
    return path.suffix.lower() == ".ipynb"


def notebook_cells(source: str) -> Sequence[dict[str, Any]] | None:
    """The cells of the notebook in that JSON; None if there is none."""
    try:
        document: Any = json.loads(source)
        cells = document["cells"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cast("list[Any]", cells)):
        return None
    return cast("list[dict[str, Any]]", cells)


def read_notebook(source: str) -> Notebook | None:
    """The notebook in that JSON; None if there is none."""
    cells = notebook_cells(source)
    if cells is None:
        return None
    notebook = Notebook(cells=len(cells))
    parts: list[str] = []
    characters_left = MAX_TEXT
    for number, cell in enumerate(cells, 1):
        part = show_cell(cell, number, notebook).text
        if len(part) > characters_left:
            break
        characters_left -= len(part)
        parts.append(part)
        notebook.shown_cells = number
    notebook.text = "\n".join(parts)
    return notebook


def show_cell(cell: dict[str, Any], number: int, notebook: Notebook) -> ShownCell:
    """The cell of that number; its pictures go into `notebook`."""
    count = cell.get("execution_count")
    ran = f", run {count}" if isinstance(count, int) else ""
    marker = f"--- cell {number}: {cell.get('cell_type', 'unknown')}{ran} ---"
    lines: list[str] = []
    outputs: Any = cell.get("outputs")
    for at, output in enumerate(cast("list[Any]", outputs) if isinstance(outputs, list) else [], 1):
        if isinstance(output, dict):
            lines += _output(cast("dict[str, Any]", output), f"{number}.{at}", notebook)
    return ShownCell(_whole_lines([marker]), _whole_lines([joined_text(cell.get("source"))]), _whole_lines(lines))


def _whole_lines(texts: Sequence[str]) -> str:
    return "".join(text.rstrip("\n") + "\n" for text in texts if text)


def _output(output: dict[str, Any], number: str, notebook: Notebook) -> list[str]:
    match output.get("output_type"):
        case "stream":
            return [f"[output {number}, {output.get('name', 'stdout')}]", _bounded(_joined(output.get("text")))]
        case "error":
            trace: Any = output.get("traceback")
            trace_text = _joined([f"{line}\n" for line in cast("list[Any]", trace)] if isinstance(trace, list) else "")
            return [f"[output {number}, error {output.get('ename')}: {output.get('evalue')}]", _bounded(trace_text)]
        case _:
            data: Any = output.get("data")
            return _data(cast("dict[str, Any]", data) if isinstance(data, dict) else {}, number, notebook)


def _data(data: dict[str, Any], number: str, notebook: Notebook) -> list[str]:
    lines: list[str] = []
    for kind in _PICTURES:
        if kind in data:
            name = f"output {number}"
            picture = _decoded(_joined(data[kind]))
            if picture and len(notebook.pictures) < MAX_PICTURES:
                notebook.pictures[name] = picture
                lines.append(f"[{name}, picture {kind}]")
            else:
                why = "too many to show" if picture else "damaged"
                lines.append(f"[{name}, picture {kind}: {why}]")
            break
    kind = next((kind for kind in _TEXTS if kind in data), None)
    if kind is not None and not (lines and kind == "text/plain"):  # "<Figure size 640x480 with 1 Axes>"
        value = data[kind]
        written = json.dumps(value, ensure_ascii=False) if kind == "application/json" else _joined(value)
        lines += [f"[output {number}, {kind}]", _bounded(written)]
    elif not lines:
        lines.append(f"[output {number}: {', '.join(data) or 'nothing'}, not shown]")
    return lines


def joined_text(value: Any) -> str:
    """Text that nbformat keeps as a string or as a list of lines."""
    parts = cast("list[Any]", value) if isinstance(value, list) else [value]
    return "".join(part for part in parts if isinstance(part, str))


def _joined(value: Any) -> str:
    """The same of an output, without colours."""
    return _COLOURS.sub("", joined_text(value))


def _bounded(text: str) -> str:
    if len(text) <= MAX_OUTPUT:
        return text
    half = MAX_OUTPUT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return b""
