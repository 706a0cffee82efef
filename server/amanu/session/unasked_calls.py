"""Calls of the session's tools that no model asked for: for what a prompt mentions, and the command lines of a slash
command. A turn has not begun, so nobody can be asked: only what policy allows without a question runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from amanu.core.tool import AnyTool, CallContext, Outcome, Subject, ToolError
from amanu.permissions.offers import permitting
from amanu.session.core import SessionCore


class NeedsApproval(ToolError):
    """Only the user can allow the call."""

    def __init__(self, rules: list[str]) -> None:
        """`rules`: those that would allow it, as text; empty where none can."""
        super().__init__("it needs your approval; ask the model to look at it.")
        self.rules = rules


@dataclass(frozen=True)
class UnaskedCall:
    """A call that has run."""

    title: str
    rule: str
    """The rule that allowed it."""
    outcome: Outcome


class UnaskedCalls:
    """Runs tools of one session."""

    def __init__(self, core: SessionCore, tools: Mapping[str, AnyTool]) -> None:
        self._approvals = core.approvals
        self._policy = core.policy
        self._tools = tools

    async def run(self, name: str, **arguments: Any) -> UnaskedCall:
        """Run the tool with those arguments. Raises `ToolError`; `NeedsApproval` when policy does not allow it."""
        tool = self._tools.get(name)
        if tool is None:
            raise ToolError("No editor is attached.")
        call = CallContext(
            "mention",
            "",
            0,
            allowed=self._approvals.allowed,
            denied=self._approvals.denied,
            guarded=self._approvals.guarded,
        )
        params = tool.parse(arguments).params
        call.preview = preview = await tool.preview(params, call)
        subjects = [preview.subject, *preview.extra_subjects]
        if len(self._approvals.allowed(subjects)) < len(subjects):
            raise NeedsApproval(self._rules(subjects))
        rule = self._approvals.verdict(subjects).rule
        return UnaskedCall(preview.title, rule, await tool.run(params, call))

    def _rules(self, subjects: list[Subject]) -> list[str]:
        return permitting(self._approvals.rules(), subjects, self._policy.context())
