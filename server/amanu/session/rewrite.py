"""Lines of a file that a session rewrites at the user's word (`amanu/rewrite/start`): Ctrl+I in an editor.

It is an ordinary session whose turns have one step: the model's reply becomes a call of `rewrite_lines`, whose edit is
proposed, decided on, journalled and undone like any other.
"""

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from amanu.agent.replies_as_calls import ReplyCall, as_calls, fall_back_as_calls
from amanu.agent.system_prompt import rewrite_prompt
from amanu.core.agent import AgentRun, SystemPrompt
from amanu.core.conversation import Conversation, User
from amanu.core.ending import Ending
from amanu.core.listeners import StepRecord, TurnListener, TurnView
from amanu.core.tool import Subject, ToolError
from amanu.proposals.proposals import Proposals
from amanu.session.core import SessionCore
from amanu.session.model_choice import ModelChoice
from amanu.tools.edits.rewrite_lines import RewriteLines
from amanu.tools.edits.rewrite_text import MAX_LINES, RewriteTarget, first_prompt, next_prompt
from amanu.tools.environment import ToolEnvironment
from amanu.workspace.diagnostics import foreign_findings, format_finding
from amanu.workspace.text_file import FileText, split_lines
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import ModelInfo, SelectionAttachment
from amanu_protocol.requests import RewriteStartParams

_CHANGED = "These lines have changed since. Select them again."


@dataclass(frozen=True)
class _Task:
    """What the next turn rewrites, and what the model has heard so far."""

    tool: RewriteLines
    target: RewriteTarget
    call: ReplyCall


class SessionRewrite:
    """What one session rewrites; nothing in most of them, and nothing once it has become a chat."""

    def __init__(self, core: SessionCore, environment: ToolEnvironment) -> None:
        self._core = core
        self._environment = environment
        self._task: _Task | None = None
        self._turn_id = ""

    @property
    def active(self) -> bool:
        return self._task is not None

    def has_run(self, turn_id: str) -> bool:
        """Whether that is the last turn that rewrites lines: it may run on when the session is a chat already."""
        return turn_id == self._turn_id

    async def begin(self, params: RewriteStartParams) -> SelectionAttachment:
        """Aim at those lines. Returns them as what the prompt is about. Raises `AmanuError`."""
        file = await self._read(params)
        if params.version is not None and file.version != params.version:
            raise AmanuError("proposalConflict", "The file has changed since. Try again.")
        lines = split_lines(file.text)
        start, end = params.lines.start, min(params.lines.end, len(lines))
        if start > len(lines):
            raise AmanuError("invalidParams", f"{file.path.name} has no such lines.", path="lines")
        if end - start > MAX_LINES:
            raise AmanuError("invalidParams", f"Select at most {MAX_LINES:,} lines.", path="lines")
        target = RewriteTarget(file, start, max(start, end))
        path, mask = self._core.workspace.display_path(file.path), self._core.services.secrets.mask_content
        findings = [format_finding(finding) for finding in foreign_findings(params.findings)]
        conversation = Conversation()
        text = await asyncio.to_thread(first_prompt, target, path, mask(params.instruction), findings, mask)
        conversation.append(User(text=text))
        self._aim(target, conversation)
        return SelectionAttachment(path=path, lines=params.lines, text=mask("".join(target.region)))

    async def refine(self, instruction: str) -> None:
        """Aim at what has become of the lines, with what the user wants changed. Raises `AmanuError`."""
        assert self._task is not None
        file = await self._core.workspace.read_if_exists(self._task.target.file.path)
        target = None if file is None else self._task.target.grown_to(file)
        if target is None:
            raise AmanuError("proposalConflict", _CHANGED)
        mask = self._core.services.secrets.mask_content
        conversation = Conversation(list(self._task.call.conversation))
        prompt = next_prompt(target, self._task.tool.path, mask(instruction), mask)
        if isinstance(conversation.last, User):  # it was never answered
            prompt = f"{conversation.last.text}\n\n{prompt}"
            conversation = Conversation(list(conversation)[:-1])
        conversation.append(User(text=prompt))
        self._aim(target, conversation)

    def end(self) -> None:
        """From now on it is a chat."""
        self._task = None

    def run(self, run: AgentRun) -> AgentRun:
        """That run, to rewrite the lines and nothing else."""
        if self._task is None:
            return run
        self._turn_id = run.turn_id
        memory = run.conversation.memory
        return replace(
            run,
            instructions=partial(_instructions, memory),
            tools={self._task.tool.name: self._task.tool},
            listeners=[_OneStep(self._core.proposals)],
        )

    def choice(self, choice: ModelChoice) -> ModelChoice:
        """Those models, with their replies as edits."""
        if self._task is None:
            return choice
        fall_back_as_calls(choice.fallbacks, self._task.call)
        return replace(choice, candidate=as_calls(choice.candidate, self._task.call))

    # ------------------------------------------------------------------------------------------------

    def _aim(self, target: RewriteTarget, conversation: Conversation) -> None:
        tool = RewriteLines(self._environment, target)
        self._task = _Task(tool, target, ReplyCall(tool.name, tool.path, conversation))

    async def _read(self, params: RewriteStartParams) -> FileText:
        """The file as the user sees it. Raises `AmanuError` when a model may not read it unasked."""
        workspace = self._core.workspace
        try:
            path = workspace.resolve(params.path)
            name = workspace.relative(path)
            if not self._core.approvals.allowed([Subject("read_file", "read", name)]):
                raise AmanuError(
                    "permissionDenied",
                    f"{Path(name).name} may hold secrets, or a rule protects it, so it is not sent to a model.",
                    hint="A rule that allows reading it changes that.",
                )
            return await workspace.read(path)
        except ToolError as error:
            raise AmanuError("permissionDenied", error.for_user) from None


def _instructions(memory: str, info: ModelInfo) -> SystemPrompt:
    return rewrite_prompt(memory)


class _OneStep(TurnListener):
    """Ends the turn after its only step: with why there was no edit, if there was none."""

    def __init__(self, proposals: Proposals) -> None:
        self._proposals = proposals

    async def after_step(self, turn: TurnView, step: StepRecord) -> Ending:
        result = step.results[0]
        if not result.is_error or self._proposals.of_call(result.call_id) is not None:
            return Ending("completed")
        return Ending("failed", result.text, can_continue=True)
