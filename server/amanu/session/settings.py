"""The user's settings and rules as a page shows and changes them. Their files keep the user's comments and order."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from amanu.config import Settings, load_settings, set_by_environment, settings_from, workspace_rules
from amanu.core.rules import Rule, parse_rule
from amanu.permissions.offers import explain_rule
from amanu.permissions.rule_store import RuleStore
from amanu.session.services import Services
from amanu.session.setting_fields import SettingField, setting_fields
from amanu.storage.toml_file import read_document, write_document
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import (
    RuleAddParams,
    RuleChangeResult,
    RuleDecision,
    RuleOrigin,
    RuleRemoveParams,
    Setting,
    SettingsListResult,
    SettingsSetResult,
    StoredRule,
)

_LISTS: Mapping[RuleDecision, str] = {"allow": "allow", "deny": "deny", "mustAsk": "must_ask"}
"""Decision → its list under `[rules]`."""


class UserSettings:
    """Of one daemon. `changed` is called with the settings as they are after each change."""

    def __init__(self, services: Services, environ: Mapping[str, str], changed: Callable[[Settings], None]) -> None:
        self._home = services.home
        self._rules: RuleStore = services.rules
        self._environ = environ
        self._changed = changed
        self._writing = asyncio.Lock()

    async def list(self) -> SettingsListResult:
        """All settings as the file and the environment have them now. Raises `AmanuError` (invalidParams)."""
        return await asyncio.to_thread(self._list)

    async def set(self, key: str, value: Any) -> SettingsSetResult:
        """Write a key, or take it out (None). Raises `AmanuError` (invalidParams), and changes nothing, when the key
        does not exist or may not have that value."""
        field = next((field for field in setting_fields() if field.key == key), None)
        if field is None:
            raise AmanuError("invalidParams", f"Unknown setting '{key}'.", path="key")
        async with self._writing:
            settings = await asyncio.to_thread(self._write, field, value)
        self._changed(settings)
        what = f"{key} is back to its default." if value is None else f"{key} was saved."
        return SettingsSetResult(settings=await self.list(), summary=f"{what} {_since(field)}".strip())

    def rules(self, roots: Sequence[str], trusted: Sequence[str]) -> "list[StoredRule]":
        """The rules that hold beyond a session, as the files have them now. Blocking. Raises `AmanuError`."""
        settings = load_settings(self._home, self._environ)
        rules = [
            _stored(parse_rule(decision, text, ""), "config", None)
            for decision, name in _LISTS.items()
            for text in getattr(settings.rules, name)
        ]
        rules += [_stored(table.rule(""), "config", None, table=True) for table in settings.rule]
        for rule, root in self._rules.remembered(roots):
            rules.append(_stored(rule, "user" if root is None else "workspace", root))
        for root in trusted:
            own, tables = workspace_rules(Path(root))
            rules += [_stored(parse_rule("deny", text, ""), "folder", root) for text in own.deny]
            rules += [_stored(parse_rule("mustAsk", text, ""), "folder", root) for text in own.must_ask]
            rules += [_stored(table.rule(""), "folder", root, table=True) for table in tables]
        return rules

    async def add_rule(self, params: RuleAddParams) -> RuleChangeResult:
        """Keep a rule in `config.toml`. Raises `AmanuError` (invalidRule)."""
        rule = parse_rule(params.decision, params.rule, "")
        key = f"rules.{_LISTS[rule.kind]}"
        texts = self._texts(await self.list(), key)
        if rule.text in texts:
            return RuleChangeResult(summary="This rule exists already.")
        await self.set(key, [*texts, rule.text])
        return RuleChangeResult(summary=f"{explain_rule(rule)} This holds from now on.")

    async def remove_rule(self, params: RuleRemoveParams) -> RuleChangeResult:
        """Forget a rule. Raises `AmanuError` (invalidParams) when there is none."""
        if params.origin == "config":
            key = f"rules.{_LISTS[params.decision]}"
            texts = self._texts(await self.list(), key)
            found = params.rule in texts
            if found:
                await self.set(key, [text for text in texts if text != params.rule] or None)
        else:
            root = params.root if params.origin == "workspace" else None
            async with self._writing:
                found = await asyncio.to_thread(self._rules.forget, params.rule, root)
        if not found:
            raise AmanuError("invalidParams", f"Rule not found: {params.rule}", path="rule")
        return RuleChangeResult(summary=f"Removed: {params.rule}")

    def _texts(self, listed: SettingsListResult, key: str) -> "list[str]":
        value = next(setting.value for setting in listed.settings if setting.key == key)
        return [str(text) for text in cast("list[Any]", value or [])]

    def _list(self) -> SettingsListResult:
        document = read_document(self._home.settings)
        tree: dict[str, Any] = document.unwrap()
        text = document.as_string()
        in_force = settings_from(document.unwrap(), self._home, self._environ)
        variables = set_by_environment(self._environ)
        settings: list[Setting] = []
        for field in setting_fields():
            variable = variables.get(field.key)
            in_file = _at(tree, field.key) is not None
            settings.append(
                Setting(
                    key=field.key,
                    section=field.section,
                    kind=field.kind,
                    choices=list(field.choices),
                    values=field.values,
                    about=field.about,
                    value=_plain(in_force, field.key),
                    default=field.default,
                    origin="environment" if variable else "file" if in_file else "default",
                    variable=variable,
                    line=_line(text, field) if in_file else None,
                    restart=field.restart,
                )
            )
        return SettingsListResult(path=str(self._home.settings), settings=settings)

    def _write(self, field: SettingField, value: Any) -> Settings:
        import tomlkit

        if field.kind == "other":
            raise AmanuError("invalidParams", f"{field.key} is a table; edit it in {self._home.settings}.", path="key")
        document: Any = read_document(self._home.settings)
        name = field.key.rpartition(".")[2]
        table = document
        if field.section and (value is not None or field.section in document):
            table = document.setdefault(field.section, tomlkit.table())
        if value is None:
            table.pop(name, None)
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            array = tomlkit.array().multiline(len(items) > 1)
            for item in items:
                array.append(item)  # pyright: ignore[reportUnknownMemberType]
            table[name] = array
        else:
            table[name] = value
        try:
            settings = settings_from(document.unwrap(), self._home, {})
        except AmanuError as error:  # the user looks at the setting, not at the file
            raise AmanuError(
                "invalidParams", str(error).removeprefix(f"{self._home.settings}: "), path=error.data.path
            ) from None
        RuleStore(self._home.config, settings)  # raises if a rule is invalid
        write_document(self._home.settings, document)
        return settings_from(document.unwrap(), self._home, self._environ)


def _since(field: SettingField) -> str:
    if field.section == "rules":
        return "Rules hold from now on."
    return "It takes effect when Amanu is restarted." if field.restart else "It takes effect in new sessions."


def _stored(rule: Rule, origin: RuleOrigin, root: str | None, *, table: bool = False) -> StoredRule:
    where = {
        "config": "config.toml",
        "user": "remembered in all workspaces",
        "workspace": "remembered in this workspace",
        "folder": ".amanu/config.toml of the folder",
    }[origin]
    return StoredRule(
        decision=rule.kind,
        rule=rule.text,
        origin=origin,
        root=root,
        where=f"[[rule]] in {where}" if table else where,
        explanation=rule.reason if table else explain_rule(rule),
        removable=not table and origin != "folder",
    )


def _at(tree: Any, key: str) -> Any:
    for name in key.split("."):
        tree = cast("dict[str, Any]", tree).get(name) if isinstance(tree, dict) else None
    return tree


def _plain(settings: Settings, key: str) -> Any:
    """The value as JSON; None for nothing."""
    value = _at(settings.model_dump(mode="json"), key)
    return None if value in ([], {}) else value


def _line(text: str, field: SettingField) -> int | None:
    """Where the key stands in the text of a file, from 1; that of its table, where it is written otherwise."""
    name = field.key.rpartition(".")[2]
    section, of_table = "", None
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line):
            section = header[1]
            if section in (field.section, field.key) and of_table is None:
                of_table = number
        elif section == field.section and re.match(rf"\s*{re.escape(name)}\s*=", line):
            return number
    return of_table
