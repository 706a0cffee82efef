"""Keys of a settings file that do not exist: each is named with its place, and passed over if that opens nothing."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeGuard, cast, get_args, get_origin

from pydantic import BaseModel

_STRICT_SECTIONS = frozenset({"rules", "rule", "sandbox", "trust"})
"""Nothing in them is passed over."""
_STRICT_WORDS = (
    *("rule", "rules", "sandbox", "trust", "trusted", "permission", "permissions", "decision", "deny", "ask"),
    *("forbid", "block", "hide", "without", "layers"),
)
"""Words in names of keys, misspelt ones too, that are meant to forbid something."""


@dataclass(frozen=True)
class UnknownKey:
    """One key that does not exist."""

    sentence: str
    """Names it, its place, and what was perhaps meant."""
    is_strict: bool
    """It may have been meant to forbid something, so it cannot be passed over."""


def unknown_key(model: type[BaseModel], location: Sequence[str | int], value: Any, text: str) -> UnknownKey:
    """`location`: of the key in the tree that `model` describes; `text`: of the file, for the line; may be empty."""
    *parents, name = [part for part in location if isinstance(part, str)]
    line = key_line(text, ".".join(parents), name, next((part for part in location if isinstance(part, int)), 0))
    place = f"line {line}: " if line is not None else ""
    near = _near(model, parents, name)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    is_strict = parents[:1] != [] and parents[0] in _STRICT_SECTIONS
    is_strict = is_strict or any(map(_may_forbid, (*parents, name, *_names(value))))
    return UnknownKey(f"{place}There is no setting {'.'.join((*parents, name))}.{meant}", is_strict)


def without(tree: Mapping[str, Any], location: Sequence[str | int]) -> dict[str, Any]:
    """The tree without that key."""
    first, *rest = location
    if not rest:
        return {name: value for name, value in tree.items() if name != first}
    below = cast("Mapping[str, Any]", tree[str(first)])
    return {**tree, str(first): without(below, rest)}


def key_line(text: str, section: str, name: str, index: int = 0) -> int | None:
    """The line, from 1, with that key in the text of a TOML file; that of its table, where it is written otherwise.
    `index`: of the table, where there are several of that name."""
    current, of_table, before = "", None, 0
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line):
            current = header[1]
            if current == section and before < index:
                before, current = before + 1, ""
                continue
            if current in (section, f"{section}.{name}" if section else name) and of_table is None:
                of_table = number
        elif current == section and re.match(rf"""\s*["']?{re.escape(name)}["']?\s*[=.]""", line):
            return number
    return of_table


def _near(model: type[BaseModel], parents: Sequence[str], name: str) -> list[str]:
    """A key that was perhaps meant: a key with a like name there, or one of that name elsewhere."""
    described = _model_at(model, parents)
    prefix = ".".join((*parents, ""))
    known = [] if described is None else [*described.model_fields]
    near = [f"{prefix}{key}" for key in get_close_matches(name, known, n=2)]
    for section in model.model_fields:
        inner = _model_at(model, [section])
        if inner is not None and name in inner.model_fields:
            near.append(f"{section}.{name}")
    return near


def _model_at(model: type[BaseModel], parents: Sequence[str]) -> type[BaseModel] | None:
    """The schema of the table there; None where any key may be."""
    found: Any = model
    for parent in parents:
        if _is_model(found):
            field = found.model_fields.get(parent)
            found = None if field is None else field.annotation
            if get_origin(found) is tuple:  # each of an array of tables
                found = get_args(found)[0]
        else:  # of a table whose keys are names
            found = next(filter(_is_model, get_args(found)), None)
    return found if _is_model(found) else None


def _is_model(annotation: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _names(value: Any) -> Iterator[str]:
    """All keys in what a key is set to."""
    if isinstance(value, dict):
        for name, below in cast("dict[str, Any]", value).items():
            yield name
            yield from _names(below)
    elif isinstance(value, list):
        for below in cast("list[Any]", value):
            yield from _names(below)


def _may_forbid(name: str) -> bool:
    words: list[str] = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    return any(len(word) > 2 and get_close_matches(word.lower(), _STRICT_WORDS, 1, 0.75) for word in words)
