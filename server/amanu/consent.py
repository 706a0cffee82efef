"""What the person decided for good, in their own folder: remembered rules and trusted workspace folders.

`rules.toml` holds allow rules of the scopes user and workspace; `trust.json` the trusted folders. Both are small, read
on each use when they changed, and replaced whole.
"""

import json
import os
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, cast

from amanu.agent.policy import Rule, parse
from amanu.config import RuleTexts, workspace_rules
from amanu.storage.failure import storage_error
from amanu.storage.files import write_whole
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Scope


class Consent:
    """Rules and trust of one user. `settings` are the rules of their config.toml."""

    def __init__(self, folder: Path, settings: RuleTexts) -> None:
        self._rules_file = folder / "rules.toml"
        self._trust_file = folder / "trust.json"
        self._settings = _rules(settings, "your config.toml")

    def rules(self, roots: Sequence[str], *, trusted: bool) -> list[Rule]:
        """All stored rules for a session of those roots. A trusted workspace's own file adds deny and must-ask."""
        stored = self._read()
        found = [*self._settings, *_allowed(stored.get("user"), "rules.toml, user")]
        for root in roots:
            found += _allowed(stored.get("workspace", {}).get(root), "rules.toml, workspace")
            if trusted:
                found += _rules(workspace_rules(Path(root)), f"{root}/.amanu/config.toml")
        return found

    def remember(self, scope: Scope, rule: Rule, roots: Sequence[str]) -> None:
        """Keep an allow rule for the user, or for the session's workspace folders."""
        import tomlkit

        text = self._rules_file.read_text(encoding="utf-8") if self._rules_file.exists() else ""
        document: Any = tomlkit.parse(text)
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
        self._write(self._rules_file, tomlkit.dumps(document).encode())

    def is_trusted(self, roots: Sequence[str], declared: Collection[str] = ()) -> bool:
        """True when the person declared every root trusted: here (`set_trust`) or in their editor."""
        kept = set(self._trusted())
        real = {os.path.realpath(root) for root in declared} | kept
        return bool(roots) and all(os.path.realpath(root) in real for root in roots)

    def set_trust(self, root: str, trusted: bool) -> None:
        kept = set(self._trusted())
        real = os.path.realpath(root)
        kept = kept | {real} if trusted else kept - {real}
        self._write(self._trust_file, json.dumps(sorted(kept), indent=1).encode() + b"\n")

    def _write(self, path: Path, data: bytes) -> None:
        try:
            write_whole(path, data)
        except OSError as error:
            raise storage_error(error, path.parent) from error

    def _trusted(self) -> list[str]:
        try:
            return json.loads(self._trust_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        except ValueError as error:
            raise AmanuError("storageError", f"{self._trust_file} is damaged: {error}. Mend or delete it.") from error

    def _read(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self._rules_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except tomllib.TOMLDecodeError as error:
            raise AmanuError("storageError", f"{self._rules_file} is not valid TOML: {error}.") from error


def _rules(texts: RuleTexts, origin: str) -> list[Rule]:
    rules = [
        *(Rule("allow", text, origin) for text in texts.allow),
        *(Rule("deny", text, origin) for text in texts.deny),
        *(Rule("mustAsk", text, origin) for text in texts.must_ask),
    ]
    for rule in rules:
        parse(rule.text)
    return rules


def _allowed(table: Any, origin: str) -> list[Rule]:
    match table:
        case {"allow": [*texts]}:
            return [Rule("allow", str(text), origin) for text in cast("list[object]", texts)]
        case _:
            return []
