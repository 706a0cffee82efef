"""Loads a skill's instructions into the conversation."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from amanu.core.skills import ACTIVATE_SKILL, Skills
from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, Tool
from amanu.text.display import one_line


class ActivateSkillParams(Params):
    name: str = Field(min_length=1, max_length=200, description="As in <available_skills>.")


class ActivateSkill(Tool[ActivateSkillParams]):
    name = ACTIVATE_SKILL
    effect = "read"
    description = (
        "Loads a skill: instructions for one kind of task, listed in the latest <available_skills> block. When the "
        "user's task fits a description, activate that skill before you begin, once."
    )
    params = ActivateSkillParams

    def __init__(self, skills: Skills) -> None:
        self._skills = skills

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return f"Activate the skill {one_line(str(arguments.get('name', '')))}"

    async def preview(self, params: ActivateSkillParams, call: CallContext) -> Preview:
        return Preview(
            title=f"Activate the skill {one_line(params.name)}",
            subject=Subject(self.name, self.effect, params.name),
            detail=params.name,
        )

    async def run(self, params: ActivateSkillParams, call: CallContext) -> Outcome:
        activated = await self._skills.activate(params.name, call.turn_id)
        return Outcome(activated.text, "" if activated.is_new else "active already")
