"""The tools that enter and leave plan mode. The user decides on both: a built-in rule always asks."""

import hashlib
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, PlanText, Preview, Subject, ToolError
from amanu.tools.environment import SessionTool, ToolEnvironment

MAX_PLAN = 64 * 1024
"""Characters of a plan: it is shown whole, and told to the model again after each compaction."""


class EnterPlanModeParams(Params):
    reason: str = Field(description="Why, in one sentence for the user.")


class EnterPlanMode(SessionTool[EnterPlanModeParams]):
    name = "enter_plan_mode"
    effect = "read"
    description = (
        "Asks the user to let you plan before you change anything: for work with several sensible approaches or many "
        "files, not for clear tasks."
    )
    params = EnterPlanModeParams

    def __init__(self, environment: ToolEnvironment) -> None:
        super().__init__(environment)
        self._plan_mode = environment.plan_mode

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return "Plan before changing anything"

    async def preview(self, params: EnterPlanModeParams, call: CallContext) -> Preview:
        if self._plan_mode is None or self._plan_mode.active:
            raise ToolError("You are in plan mode already.")
        reason = params.reason.strip()
        return Preview(
            title="Plan before changing anything", subject=Subject(self.name, self.effect, ""), detail=reason
        )

    async def run(self, params: EnterPlanModeParams, call: CallContext) -> Outcome:
        assert self._plan_mode is not None, "run without preview"
        self._plan_mode.enter()
        return Outcome("The user agreed: you are in plan mode.", "Plan mode")


class ExitPlanModeParams(Params):
    path: str = ""


class ExitPlanMode(SessionTool[ExitPlanModeParams]):
    name = "exit_plan_mode"
    effect = "read"
    waits = True  # for edits of the plan in the same step
    description = "Shows the plan to the user, who edits, approves or rejects it. Only in plan mode; call it alone."
    params = ExitPlanModeParams

    def __init__(self, environment: ToolEnvironment) -> None:
        super().__init__(environment)
        self._plan_mode = environment.plan_mode
        self._headless = environment.headless

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return "Carry out this plan"

    async def preview(self, params: ExitPlanModeParams, call: CallContext) -> Preview:
        if self._plan_mode is None or not self._plan_mode.active:
            raise ToolError("You are not in plan mode. To plan first, call enter_plan_mode; else go on with the work.")
        return await self.preview_again(params, call)

    async def preview_again(self, params: ExitPlanModeParams, call: CallContext) -> Preview:
        """The user may have edited the plan, and may have changed the mode: the question stands in any."""
        assert self._plan_mode is not None, "previewed again without preview"
        path = self._workspace.resolve(str(self._plan_mode.path))
        if params.path and self._workspace.resolve(params.path) != path:
            raise ToolError(f"{params.path} is not the plan. Write the plan to {path}.")
        file = await self._workspace.read_if_exists(path)
        if file is None or not file.text.strip():
            raise ToolError(f"The plan is empty. Write it to {path} first.")
        if len(file.text) > MAX_PLAN:
            raise ToolError(
                f"The plan has {len(file.text):,} characters; at most {MAX_PLAN:,} can be approved. Shorten it."
            )
        return Preview(
            title="Carry out this plan",
            subject=Subject(self.name, self.effect, self._workspace.relative(path), plan=True),
            detail=file.text,
            reads=frozenset([str(path)]),
            digest=hashlib.sha256(file.text.encode("utf-8", "surrogatepass")).hexdigest(),
            plan=PlanText(path, file.text),
        )

    async def run(self, params: ExitPlanModeParams, call: CallContext) -> Outcome:
        assert self._plan_mode is not None, "run without preview"
        assert call.preview is not None, "run without preview"
        assert call.preview.plan is not None, "run without preview"
        mode = (call.decision and call.decision.mode) or "ask"
        fresh_context = call.decision is not None and call.decision.fresh_context
        await self._plan_mode.approve(call.preview.plan.text, mode, fresh_context=fresh_context)
        return Outcome(
            f"The user approved the plan, and the mode is now {mode}. Carry the plan out. Its steps are your to-do "
            "list; keep it up to date.",
            f"Approved; the mode is {mode}",
        )

    async def reject(self, params: ExitPlanModeParams, call: CallContext, reason: str) -> str:
        if self._headless:
            return (
                "Denied: nobody is there to approve the plan, and until then nothing may change. Do not carry "
                "it out. End your turn with the plan as your answer."
            )
        reply = f" They said: {reason}" if reason else ""
        active = self._plan_mode is not None and self._plan_mode.active
        again = " You are still in plan mode: revise it, then call exit_plan_mode again." if active else ""
        return f"The user has not approved the plan.{reply}{again}"
