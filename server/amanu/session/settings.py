"""The user's settings as a page shows and changes them. Their file keeps the user's comments and order."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, cast

from amanu.config import Settings, load_settings, set_by_environment, settings_from
from amanu.core.unknown_keys import key_line
from amanu.permissions.rule_store import RuleStore
from amanu.session.services import Services
from amanu.session.setting_fields import SettingField, setting_fields
from amanu.system.file_stamp import file_stamp
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import (
    Setting,
    SettingsListResult,
    SettingsSetResult,
)

log = logging.getLogger(__name__)


class UserSettings:
    """Of one daemon. `changed` is called after each change."""

    def __init__(self, services: Services, environ: Mapping[str, str], changed: Callable[[], None]) -> None:
        self.current = services.settings
        """As they are now. A session keeps those it was opened with."""
        self._home = services.home
        self._environ = environ
        self._changed = changed
        self._writing = asyncio.Lock()
        self._stamp = file_stamp(self._home.settings)

    async def list(self) -> SettingsListResult:
        """All settings as the file and the environment have them now. Raises `AmanuError` (invalidParams)."""
        return await asyncio.to_thread(self._list)

    def load(self) -> Settings:
        """All settings as the file and the environment have them now. Blocking. Raises `AmanuError`."""
        return load_settings(self._home, self._environ)

    async def refresh(self) -> None:
        """Take the file as it is now if it has changed. One that is not valid changes nothing here: the rules in it
        are read anew for each call, which then says what is wrong."""
        async with self._writing:
            stamp = await asyncio.to_thread(file_stamp, self._home.settings)
            if stamp == self._stamp:
                return
            self._stamp = stamp
            try:
                self.current = await asyncio.to_thread(self.load)
            except AmanuError as error:
                log.warning("settings: %s", error)
                return
        self._changed()

    async def set(self, key: str, value: Any) -> SettingsSetResult:
        """Write a key, or take it out (None). Raises `AmanuError` (invalidParams), and changes nothing, when the key
        does not exist or may not have that value."""
        field = next((field for field in setting_fields() if field.key == key), None)
        if field is None:
            raise AmanuError("invalidParams", f"Unknown setting '{key}'.", path="key")
        async with self._writing:
            self.current = await asyncio.to_thread(self._write, field, value)
            self._stamp = await asyncio.to_thread(file_stamp, self._home.settings)
        self._changed()
        what = f"{key} is back to its default." if value is None else f"{key} was saved."
        return SettingsSetResult(settings=await self.list(), summary=f"{what} {_since(field)}".strip())

    def _list(self) -> SettingsListResult:
        from amanu.storage.toml_file import read_document

        document = read_document(self._home.settings)
        tree: dict[str, Any] = document.unwrap()
        text = document.as_string()
        in_force = settings_from(document.unwrap(), self._home, self._environ)
        variables = set_by_environment(self._environ)
        settings: list[Setting] = []
        for field in setting_fields():
            variable = variables.get(field.key)
            in_file = _at(tree, field.key) is not None
            line = key_line(text, field.section, field.key.rpartition(".")[2]) if in_file else None
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
                    line=None if line is None else line - 1,
                    restart=field.restart,
                )
            )
        return SettingsListResult(path=str(self._home.settings), settings=settings)

    def _write(self, field: SettingField, value: Any) -> Settings:
        import tomlkit

        from amanu.storage.toml_file import read_document, write_document

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


def _at(tree: Any, key: str) -> Any:
    for name in key.split("."):
        tree = cast("dict[str, Any]", tree).get(name) if isinstance(tree, dict) else None
    return tree


def _plain(settings: Settings, key: str) -> Any:
    """The value as JSON; None for nothing."""
    value = _at(settings.model_dump(mode="json"), key)
    return None if value in ([], {}) else value
