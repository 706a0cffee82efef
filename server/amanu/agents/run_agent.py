"""Hands work to an agent with a conversation of its own."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pydantic import Field

from amanu.agents.model import AgentReport, AgentTask
from amanu.core.model import ToolSpec
from amanu.core.sub_agents import AgentDefinition
from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, Tool, ToolError, tool_schema
from amanu.text.display import one_line

MAX_TEXT = 20_000
"""Characters of a result that the model gets; all of it is in the agent's own session."""
MAX_LISTED = 120
"""Characters of a description in the list of agents, which goes with every request."""


class Agents(Protocol):
    """The sub-agents of one session."""

    def available(self) -> Sequence[AgentDefinition]:
        """The agents there are; they change only between turns."""
        ...

    async def run(self, task: AgentTask, call: CallContext) -> AgentReport:
        """Have an agent do the work for that call, and wait until it has ended or, with `background`, has started.
        Cancelling stops it. Raises `ToolError` when it cannot start."""
        ...


class RunAgentParams(Params):
    agent: str
    prompt: str = Field(description="All it needs to know: it has not seen this conversation.")
    description: str = Field(description="The task in 3 to 6 words, for the user.")
    background: bool = Field(False, description="Go on meanwhile; you are told when it ends.")


class RunAgent(Tool[RunAgentParams]):
    name = "run_agent"
    effect = "read"
    description = (
        "Hands a task to an agent with a context of its own and returns its result: for broad searches, reviews, or "
        "independent parts of the work. Several calls in one reply run in parallel. Do small things yourself. Agents:"
    )
    params = RunAgentParams
    delegates = True

    def __init__(self, agents: Agents) -> None:
        self._agents = agents

    def spec(self) -> ToolSpec:
        lines = [f"- {agent.name}: {_listed(agent)}" for agent in self._agents.available()]
        return ToolSpec(self.name, "\n".join([self.description, *lines]), tool_schema(self.params))

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        agent, description = arguments.get("agent"), arguments.get("description")
        return f"{agent}: {description}" if isinstance(agent, str) and isinstance(description, str) else self.name

    async def preview(self, params: RunAgentParams, call: CallContext) -> Preview:
        names = [agent.name for agent in self._agents.available()]
        if params.agent not in names:
            raise ToolError(f"Unknown agent {params.agent!r}. Available: {', '.join(names)}.")
        if not params.prompt.strip():
            raise ToolError("The prompt is empty. Write what the agent is to do, and all it needs to know for it.")
        return Preview(
            title=f"{params.agent}: {one_line(params.description)}",
            subject=Subject(self.name, self.effect, params.agent),
            detail=params.prompt,
        )

    async def run(self, params: RunAgentParams, call: CallContext) -> Outcome:
        task = AgentTask(params.agent, params.prompt, one_line(params.description), params.background)
        report = await self._agents.run(task, call)
        text = report_text(report)
        return Outcome(text, text, is_error=not report.completed, fields={})


def report_text(report: AgentReport) -> str:
    """How an agent ended, and its result."""
    text = report.text
    if len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT]}\n[… {len(text) - MAX_TEXT:,} characters cut]"
    if not text:
        return report.message
    return f"{report.message}\n\n{text}" if report.completed else f"{report.message} It said last:\n\n{text}"


def _listed(agent: AgentDefinition) -> str:
    text = one_line(agent.description)
    return text if len(text) <= MAX_LISTED else f"{text[: MAX_LISTED - 1]}…"
