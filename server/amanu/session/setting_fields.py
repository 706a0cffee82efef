"""The settings there are, read from their models in `config.py` and the strings under the fields."""

import ast
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any, cast, get_args

from pydantic import BaseModel

from amanu import config
from amanu_protocol.requests import SettingKind

_RESTART = (
    "endpoints",
    "clouds",
    "vision",
    "request_fields",
    "context.windows",
    "catalogue.prices",
    "sandbox",
    "web",
    "checks.enabled",
    "checks.checkers",
    "history.keep_audit_mb",
    "idle_seconds",
    "log_level",
)
"""Keys and sections that the services of the daemon are made with (`services.py`); the rest holds in new sessions."""


@dataclass(frozen=True)
class SettingField:
    """A key of `config.toml`, or a table of such tables, which is edited in the file."""

    key: str
    kind: SettingKind
    choices: Sequence[str]
    values: str
    """What may be set, in words."""
    about: str
    default: Any
    restart: bool

    @property
    def section(self) -> str:
        return self.key.rpartition(".")[0]


@cache
def setting_fields() -> Sequence[SettingField]:
    """All of them, in the order of the models; those of the first level first. Blocking: some milliseconds."""
    fields = list(_fields(config.Settings, "", field_docs(config)))
    return sorted(fields, key=lambda field: field.section != "")


def needs_restart(key: str) -> bool:
    """Whether a change takes effect only after the daemon restarts."""
    return any(key == each or key.startswith(f"{each}.") for each in _RESTART)


def field_docs(*modules: ModuleType) -> Mapping[tuple[str, str], str]:
    """Class and field → the string under the field."""
    docs: dict[tuple[str, str], str] = {}
    for node in [node for module in modules for node in ast.parse(inspect.getsource(module)).body]:
        body = node.body if isinstance(node, ast.ClassDef) else []
        for field, text in pairwise(body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(doc))):
                    docs[getattr(node, "name", ""), name] = " ".join(doc.split())
                case _:
                    pass
    return docs


def values_in_words(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    """What a JSON Schema allows."""
    match schema:
        case {"$ref": str(reference)}:
            return values_in_words(defs[reference.rsplit("/", 1)[-1]], defs)
        case {"anyOf": options}:
            kinds = [values_in_words(option, defs) for option in _options(options)]
            return " or ".join(kinds)
        case {"enum": values}:
            return ", ".join(f"`{json.dumps(value)}`" for value in cast("list[Any]", values))
        case {"type": "array", "items": {"$ref": str(reference)}} if reference.endswith("/RuleTable"):
            return "tables, see [[rule]]"
        case {"type": "array"}:
            return f"list of {values_in_words(schema.get('items', {}), defs)}s"
        case {"type": "object"}:
            return f"table: name = {values_in_words(schema.get('additionalProperties', {}), defs)}"
        case {"type": str(kind)}:
            word = {"string": "text", "integer": "whole number", "boolean": "`true` or `false`"}.get(kind, kind)
            signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤"}
            limits = [f"{sign} {schema[key]:g}" for key, sign in signs.items() if key in schema]
            return " ".join([word, ", ".join(limits)]).strip()
        case _:
            return "anything"


def section_of(annotation: Any) -> tuple[type[config.SettingsSection] | None, bool]:
    """The section a field holds, and whether it is one of many, by names of the user's own."""
    kinds = (annotation, *get_args(annotation))
    section = next(
        (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, config.SettingsSection)), None
    )
    return section, len(kinds) > 1


def _fields(model: type[BaseModel], prefix: str, docs: Mapping[tuple[str, str], str]) -> Iterator[SettingField]:
    schema = model.model_json_schema()
    for name, field in model.model_fields.items():
        key = f"{prefix}{name}"
        section, is_table = section_of(field.annotation)
        if section is not None and not is_table:
            yield from _fields(section, f"{key}.", docs)
            continue
        allowed, defs = schema["properties"][name], schema.get("$defs", {})
        kind, choices = _kind(allowed, defs)
        about = docs.get((model.__name__, name)) or inspect.cleandoc((section and section.__doc__) or "")
        default = field.get_default(call_default_factory=True)
        yield SettingField(
            key,
            kind,
            choices,
            f"tables, [{key}.NAME]" if section is not None else values_in_words(allowed, defs),
            " ".join(about.split()),
            None if default in ((), {}) else default,
            needs_restart(key),
        )


def _kind(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> tuple[SettingKind, Sequence[str]]:
    match schema:
        case {"$ref": str(reference)}:
            return _kind(defs[reference.rsplit("/", 1)[-1]], defs)
        case {"anyOf": options} if len(kinds := _options(options)) == 1:
            return _kind(kinds[0], defs)
        case {"enum": values}:
            return "choice", [str(value) for value in cast("list[Any]", values)]
        case {"type": "array", "items": {"type": "string"}}:
            return "list", ()
        case {"type": "boolean"}:
            return "switch", ()
        case {"type": "integer" | "number"}:
            return "number", ()
        case {"type": "string"}:
            return "text", ()
        case _:
            return "other", ()


def _options(options: Any) -> list[dict[str, Any]]:
    return [option for option in cast("list[dict[str, Any]]", options) if option != {"type": "null"}]
