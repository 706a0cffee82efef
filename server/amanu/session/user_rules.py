"""The user's rules that hold beyond a session, as clients list, change and preview them."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from amanu.config import workspace_rules
from amanu.core.rules import Rule, parse_rule
from amanu.permissions import offers
from amanu.session.events import Client
from amanu.session.services import Services
from amanu.session.session import Session
from amanu.session.settings import UserSettings
from amanu.text import wording
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import (
    RuleAddParams,
    RuleChangeResult,
    RuleDecision,
    RuleListParams,
    RuleListResult,
    RuleOrigin,
    RulePreviewParams,
    RulePreviewResult,
    RuleRemoveParams,
    StoredRule,
)

_MAX_COVERED = 20
"""Past questions that a preview names."""
_LISTS: Mapping[RuleDecision, str] = {"allow": "allow", "deny": "deny", "mustAsk": "must_ask"}
"""Decision → its list under `[rules]` in the user's settings."""


class UserRules:
    """`sessions` are the open ones."""

    def __init__(self, services: Services, settings: UserSettings, sessions: Mapping[str, Session]) -> None:
        self._services = services
        self._settings = settings
        self._sessions = sessions
        self._forgetting = asyncio.Lock()

    async def list(self, params: RuleListParams, client: Client) -> RuleListResult:
        """For those folders; of a folder's own file only when it is trusted."""
        trust = self._services.trust
        roots = [root for root in params.roots if Path(root).is_absolute()]
        states = [await asyncio.to_thread(trust.look, root, client.trusted_roots) for root in roots]
        trusted = [root for root, state in zip(roots, states, strict=True) if state.state == "trusted"]
        return RuleListResult(rules=await asyncio.to_thread(self._stored_rules, roots, trusted))

    async def add(self, params: RuleAddParams) -> RuleChangeResult:
        """Keep a rule in `config.toml`. Raises `AmanuError` (invalidRule)."""
        rule = parse_rule(params.decision, params.rule, "")
        key = f"rules.{_LISTS[rule.kind]}"
        texts = await self._texts(key)
        if rule.text in texts:
            return RuleChangeResult(summary="This rule exists already.")
        await self._settings.set(key, [*texts, rule.text])
        return RuleChangeResult(summary=f"{offers.explain_rule(rule)} This holds from now on.")

    async def remove(self, params: RuleRemoveParams) -> RuleChangeResult:
        """Forget a rule. Raises `AmanuError` (invalidParams) when there is none."""
        if params.origin == "config":
            key = f"rules.{_LISTS[params.decision]}"
            texts = await self._texts(key)
            found = params.rule in texts
            if found:
                await self._settings.set(key, [text for text in texts if text != params.rule] or None)
        else:
            root = params.root if params.origin == "workspace" else None
            async with self._forgetting:
                found = await asyncio.to_thread(self._services.rules.forget, params.rule, root)
        if not found:
            raise AmanuError("invalidParams", f"Rule not found: {params.rule}", path="rule")
        return RuleChangeResult(summary=f"Removed: {params.rule}")

    def preview(self, params: RulePreviewParams) -> RulePreviewResult:
        """What rules, written as text, mean, and which past questions they would have answered: those of that session,
        and of other open sessions in the same folders."""
        try:
            explanation = offers.explain(params.rule, params.decision)
            covers, covered = None, list[str]()
            asking = self._sessions.get(params.session_id or "")
            if asking is not None:
                covers, covered = asking.approvals.would_cover(params.rule, params.tool_call_id)
                for session in self._sessions.values():
                    if session is not asking and session.state.roots == asking.state.roots:
                        covered += session.approvals.would_cover(params.rule, None)[1]
            preview = RulePreviewResult(
                valid=True,
                explanation=explanation,
                covers=covers,
                covered=covered[:_MAX_COVERED],
                covered_count=len(covered),
            )
        except AmanuError as error:
            preview = RulePreviewResult(valid=False, explanation=f"{error} {error.data.hint or ''}".strip())
        return wording.explain_rule_preview(preview)

    async def _texts(self, key: str) -> "list[str]":
        listed = await self._settings.list()
        value = next(setting.value for setting in listed.settings if setting.key == key)
        return [str(text) for text in cast("list[Any]", value or [])]

    def _stored_rules(self, roots: Sequence[str], trusted: Sequence[str]) -> "list[StoredRule]":
        """As the files have them now. Blocking. Raises `AmanuError`."""
        settings = self._settings.load()
        rules = [
            _stored(parse_rule(decision, text, ""), "config", None)
            for decision, name in _LISTS.items()
            for text in getattr(settings.rules, name)
        ]
        rules += [_stored(table.rule(""), "config", None, table=True) for table in settings.rule]
        for rule, root in self._services.rules.remembered(roots):
            rules.append(_stored(rule, "user" if root is None else "workspace", root))
        for root in trusted:
            own, tables = workspace_rules(Path(root))
            rules += [_stored(parse_rule("deny", text, ""), "folder", root) for text in own.deny]
            rules += [_stored(parse_rule("mustAsk", text, ""), "folder", root) for text in own.must_ask]
            rules += [_stored(table.rule(""), "folder", root, table=True) for table in tables]
        return rules


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
        explanation=rule.reason if table else offers.explain_rule(rule),
        removable=not table and origin != "folder",
    )
