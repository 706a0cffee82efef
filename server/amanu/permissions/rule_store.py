"""The rules that hold beyond a session: those of the settings, and those the user had remembered.

`rules.toml` in the configuration folder holds the remembered ones: allow rules of the scopes user and workspace. It is
small, and replaced whole. Every use checks its status, that of the settings and that of the workspace's file, and reads
the rules again if one of them has changed.
"""

import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from amanu.config import RuleSettings, Settings, user_rules, workspace_rules
from amanu.core.rules import Rule, RuleTable, parse_rule
from amanu.system.file_stamp import FileStamp, file_stamp
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Scope

_FRESH = 2.0
"""Seconds in which a file may change again without a new timestamp: file systems count in ticks, FAT in the longest.
The rules of a file changed so recently are read on each use."""


class RuleStore:
    """The rules of one user. `folder` is their configuration folder. Raises `AmanuError` (invalidRule)."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._rules_file = folder / "rules.toml"
        self._settings_file = folder / "config.toml"
        self._cache: dict[tuple[tuple[str, ...], bool], tuple[list[FileStamp], list[Rule]]] = {}
        """(roots, trusted) → how their files looked, and the rules in them."""
        self._take(settings.rules, settings.rule)

    def rules(self, roots: Sequence[str], *, trusted: bool) -> list[Rule]:
        """All stored rules for a session of those roots. A trusted workspace's own file adds deny
        and must-ask rules. Raises `AmanuError` (storageError, invalidRule)."""
        key = (tuple(roots), trusted)
        stamps = self._file_stamps(roots)
        cached = self._cache.get(key)
        if cached is None or cached[0] != stamps:
            cached = (stamps, self._stored(roots, trusted=trusted))
            self._cache.pop(key, None)
            if all(stamp is None or max(stamp[3:], default=0) < time.time_ns() - _FRESH * 1e9 for stamp in stamps):
                self._cache[key] = cached
        return list(cached[1])

    def _file_stamps(self, roots: Sequence[str]) -> list[FileStamp]:
        """Stamps of the settings, the remembered rules, and of each workspace's own and the folders they are in; of a
        link both its own and its target's."""
        stamps = [file_stamp(self._settings_file), file_stamp(self._rules_file)]
        for root in map(Path, roots):
            own = root / ".amanu" / "config.toml"
            stamps += [
                file_stamp(root),
                file_stamp(own.parent, follow=False),
                file_stamp(own, follow=False),
                file_stamp(own),
            ]
        return stamps

    def _stored(self, roots: Sequence[str], *, trusted: bool) -> list[Rule]:
        if file_stamp(self._settings_file) != self._settings_stamp:  # edited by hand
            self._take(*user_rules(self._settings_file))
        stored = self._read()
        rules = [*self._settings, *_allow_rules(stored.get("user"), "rules.toml, user")]
        for root in roots:
            rules += _allow_rules(_table(stored.get("workspace")).get(root), "rules.toml, workspace")
            if trusted:
                rules += _rules(*workspace_rules(Path(root)), f"{root}/.amanu/config.toml")
        return rules

    def remember(self, scope: Scope, rule: Rule, roots: Sequence[str]) -> None:
        """Keep an allow rule for the user, or for the session's workspace folders. Raises `AmanuError`
        (storageError)."""
        import tomlkit

        document: Any = self._document()
        tables: list[Any] = []
        if scope == "user":
            tables.append(document.setdefault("user", tomlkit.table()))
        else:
            folders = document.setdefault("workspace", tomlkit.table(is_super_table=True))
            tables += [folders.setdefault(root, tomlkit.table()) for root in roots]
        for table in tables:
            allow = table.setdefault("allow", tomlkit.array().multiline(True))
            if rule.text not in allow:
                allow.append(rule.text)
        self._write(document)

    def forget(self, text: str, root: str | None) -> bool:
        """Remove a remembered rule, of the user or of that folder. False when there is none. Raises `AmanuError`
        (storageError)."""
        document: Any = self._document()
        table = document.get("user") if root is None else _table(document.get("workspace")).get(root)
        allow = _table(table).get("allow", [])
        if text not in allow:
            return False
        allow.remove(text)
        self._write(document)
        return True

    def remembered(self, roots: Sequence[str]) -> list[tuple[Rule, str | None]]:
        """The remembered rules, each with the folder it is for; None: for all. Raises `AmanuError`."""
        stored = self._read()
        rules: list[tuple[Rule, str | None]] = [(rule, None) for rule in _allow_rules(stored.get("user"), "user")]
        for root in roots:
            folder = _allow_rules(_table(stored.get("workspace")).get(root), "workspace")
            rules += [(rule, root) for rule in folder]
        return rules

    def _take(self, texts: RuleSettings, tables: Sequence[RuleTable]) -> None:
        self._settings = _rules(texts, tables, "your config.toml")
        self._settings_stamp = file_stamp(self._settings_file)

    def _document(self) -> Any:
        from amanu.storage.toml_file import read_document

        return read_document(self._rules_file)

    def _write(self, document: Any) -> None:
        from amanu.storage.toml_file import write_document

        write_document(self._rules_file, document)

    def _read(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self._rules_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (ValueError, RecursionError) as error:  # also for what is not UTF-8
            raise AmanuError("storageError", f"{self._rules_file} is not valid TOML: {error}.") from error
        except OSError as error:
            raise AmanuError("storageError", f"{self._rules_file} cannot be read: {error.strerror}.") from error


def _rules(texts: RuleSettings, tables: Sequence[RuleTable], origin: str) -> list[Rule]:
    return [
        *(parse_rule("allow", text, origin) for text in texts.allow),
        *(parse_rule("deny", text, origin) for text in texts.deny),
        *(parse_rule("mustAsk", text, origin) for text in texts.must_ask),
        *(table.rule(origin) for table in tables),
    ]


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _allow_rules(table: Any, origin: str) -> list[Rule]:
    unknown = sorted({*_table(table)} - {"allow"})
    if unknown:  # a deny that is passed over is worse than none
        raise AmanuError(
            "storageError",
            f"{origin}: only 'allow' is permitted there, but it sets {unknown[0]!r}.",
            hint="Put rules that deny or ask under [rules] in your config.toml.",
        )
    match table:
        case {"allow": [*texts]}:
            return [parse_rule("allow", str(text), origin) for text in cast("list[object]", texts)]
        case _:
            return []
