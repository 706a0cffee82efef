"""The arguments of the commands that `workspace/executeCommand` may ask of us."""

from typing import Literal

from pydantic import Field, JsonValue

from amanu_protocol.base import LineRange, Wire
from amanu_protocol.items import Effort, Finding, Grant, Mode, Scope
from amanu_protocol.requests import Id


class NoArguments(Wire):
    """No arguments."""


class TextArguments(Wire):
    """Words, for a prompt; a bare string stands for it."""

    text: str = ""


class ModeArguments(Wire):
    text: Mode


class EffortArguments(Wire):
    text: Effort


class LinesArguments(Wire):
    """Lines of a file with the text they had, and what others find wrong there."""

    path: str
    lines: LineRange
    text: str
    findings: list[Finding] = []


class JobArguments(Wire):
    """A background command."""

    session: Id
    job: Id


class AgentArguments(Wire):
    """A sub-agent."""

    session: Id
    agent: Id


class QuestionArguments(Wire):
    session: Id
    question: str


class QuestionAnswerArguments(QuestionArguments):
    """Answers by field; None: those written in its form."""

    outcome: Literal["answered", "declined"]
    answers: dict[str, JsonValue] | None = None


class ChangesArguments(Wire):
    """Hunks and rows by proposal, each with its seal; no proposals: all that the user was told about."""

    session: Id | None = None
    proposals: dict[str, dict[str, str]] = Field(default_factory=dict[str, dict[str, str]])


class TurnArguments(Wire):
    session: Id
    turn: str


class ProposalArguments(Wire):
    """None: the last one that has something open."""

    session: Id | None = None
    proposal: str | None = None


class PatchArguments(Wire):
    """The path of a patch file of ours."""

    path: str


class AnswerArguments(Wire):
    """`digest`: of the question as it was shown; an approval of another one does not count."""

    session: Id
    call: str
    decision: str
    digest: str | None = None
    scope: Scope = "once"
    grants: list[Grant] = []
    mode: Mode | None = None
    fresh_context: bool = False


class RuleArguments(Wire):
    """Say yes by the rule that stands in the question's document."""

    session: Id
    path: str
    scope: Scope


class TrustArguments(Wire):
    """`digest`: of what the user was shown that it enables."""

    root: str
    trusted: bool
    digest: str | None = None


class SessionArguments(Wire):
    """None: the session of the workspace."""

    session: Id | None = None
