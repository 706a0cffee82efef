"""What a tool is. The loop (`agent/`) sees only this; disks, processes and editors are behind it."""

import asyncio
import functools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar, cast

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from amanu.core.argument_aliases import normalize_arguments
from amanu.core.command import Command
from amanu.core.conversation import Picture
from amanu.core.model import Freeform, ToolSpec
from amanu.core.place import Place, Placing
from amanu.core.requirements import SandboxRequirements
from amanu_protocol.items import BlobRef, CommandSandbox, Decision, Effect, Grant, Line, Source


class Params(BaseModel):
    """The arguments of a tool. Field descriptions are written for the model: they are its documentation."""

    model_config = ConfigDict(extra="forbid")


P = TypeVar("P", bound=Params)


class ToolError(Exception):
    """A failure the model is told of and can do something about. Any other exception is our own bug."""

    def __init__(self, text: str, advice: str = "") -> None:
        """`advice` says what the model can do about it; the user reads only the text."""
        super().__init__(f"{text} {advice}" if advice else text)
        self.for_user = text


class NothingToDo(ToolError):
    """The workspace is already as the call wants it. The model is told, as of an error; for the user nothing failed."""


class CallCancelled(asyncio.CancelledError):
    """A tool was cancelled, and its text is what the model is told of it, instead of the usual sentence."""


Reach = Literal["workspace", "web", "local"]
"""Where a reading tool looks. `web`: `text` is a host of the internet, and only a rule that names the tool allows it.
`local`: a service of the user's own machine or network, and only a rule with exactly that text does."""


@dataclass(frozen=True)
class Subject:
    """What a policy rule is matched against: `tool(text)`.

    For file tools `text` is the path relative to its root with `/`; for the shell the exact command.
    """

    tool: str
    effect: Effect
    text: str
    command: Command | None = None
    """For a command line: the one of its commands that is decided on."""
    unclear: bool = False
    """A command line that is not understood: only the user can allow it, once."""
    because: str = field(default="", compare=False)
    """Why it is not understood, as a sentence for the user."""
    plan: bool = False
    """Whether the file is the session's plan."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)
    """The call's arguments as the model wrote them."""
    reach: Reach = "workspace"
    must_ask: str = ""
    """Why only the user can allow it, once, whatever the rules say: a clause. "" for nothing."""
    server: str = ""
    """The MCP server that is called; `text` is then that server's own name for the tool. Only a rule that names the
    server or the tool allows it."""
    read_only: bool = False
    """Of an MCP server: it says that the call changes nothing. A claim, which can only make policy stricter where it is
    absent."""
    permitted_by: str = field(default="", compare=False)
    """What of the user's allows it where no rule matches; "" for nothing."""


_SHORT = 120  # characters of a line that stands beside a title

SubjectFilter = Callable[[Iterable[Subject]], list[Subject]]
"""Returns those of the subjects that policy decides in one way (`permissions/session_rules.py`)."""

TrustCheck = Callable[[Path, bytes], bool]
"""Whether the user trusted the file at a path with that content (`permissions/trust_store.py`)."""


@dataclass(frozen=True)
class PlanText:
    """A plan as the user sees it, in their editor or on disk."""

    path: Path
    text: str


@dataclass(frozen=True)
class CommandPreview:
    """A command line as it would run."""

    line: str
    """The user may change it (`Tool.with_command`)."""
    placing: Placing
    requirements: SandboxRequirements
    """Their place is `placing.approved`, or the one that was decided on."""
    grants: tuple[Grant, ...] = ()
    """The grants that the user can add to an approval."""
    likely_grants: tuple[Grant, ...] = ()
    """The grants it probably needs."""
    blocked: str = ""
    """The reason why an earlier run was blocked, as a clause; "" for none."""


@dataclass(frozen=True)
class Preview:
    """What a call would do, found out without any effect."""

    title: str
    """One line for the user, such as "Edit src/app.py"."""
    subject: Subject
    detail: str
    """The whole of it, for an approval: the command, or the path and the diff stat."""
    reads: frozenset[str] = frozenset()
    """Absolute paths the call reads; it waits for earlier calls of its step that write one of them."""
    writes: frozenset[str] = frozenset()
    """Absolute paths the call writes."""
    proposal_id: str | None = None
    """The proposal that holds the call's edits, which is decided on hunk by hunk; None: there is none."""
    extra_subjects: tuple[Subject, ...] = ()
    """What else the call touches, such as further files; policy must allow each of them too."""
    digest: str = ""
    """Digest of everything that is decided on, including the bytes of files. It is computed again just before the call
    runs; if it differs, the call is decided on again."""
    command: CommandPreview | None = None
    """The command line, and where it would run; None for other calls."""
    sandbox: CommandSandbox | None = None
    """The sandbox of the command that is to be started, with the grants it probably needs, or that is typed into."""
    plan: PlanText | None = None
    """The plan that is to be approved."""
    note: str = ""
    """For the model, with the result: how the call was understood; "" for nothing."""
    review: bool = False
    """It is about a draft that the user is to decide on now."""
    notes: tuple[Line, ...] = ()
    """Lines for the user besides the detail, or besides the diff of a proposal: what the model says, where it runs."""

    def at(self, place: Place) -> "Preview":
        """The preview of its command line, to be run there."""
        if self.command is None:
            return self
        requirements = replace(self.command.requirements, place=place)
        return replace(self, command=replace(self.command, requirements=requirements))


Need = Literal["write", "network", "unsandboxed", "secrets"]
"""What a command lacks: to change the workspace, network access, to run outside the sandbox, or files that hold
secrets."""


@dataclass(frozen=True)
class Blocked:
    """What the sandbox blocked."""

    needs: frozenset[Need]
    evidence: str
    """The line of the command's output that tells so."""


@dataclass(frozen=True)
class Outcome:
    """What a call did, in words for the model and for the user."""

    for_model: str
    for_user: str
    blob: BlobRef | None = None
    """The whole output, when `for_user` or `for_model` is only part of it."""
    refused: bool = False
    """The user rejected every hunk."""
    is_error: bool = False
    """The tool worked but what it ran failed (a command with exit code 1): the model gets an error."""
    sandbox: CommandSandbox | None = None
    """For a command: the sandbox it ran in."""
    fields: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The same for the model by name, sent as an object instead of `for_model`, in this order; for a command
    `exit_code`, `stdout`, `stderr`, `duration_s`, `truncated`, `job`. Empty: the text is sent."""
    pictures: tuple[Picture, ...] = ()
    """Pictures and PDF documents that the model is shown; they are stored already."""
    sources: Sequence[Source] = ()
    """Pages it found, shown to the user as an item of their own."""
    title: str = ""
    """`ToolCall.title` from now on, where it is not what the preview announced."""
    summary: str = ""
    """`ToolCall.summary`; "": `for_user` itself where that is one line."""
    warns: bool = False
    """`ToolCall.warns`."""
    not_undone: Sequence[str] = ()
    """`ToolCall.not_undone`."""
    blocked: Blocked | None = None
    """For a command: what the sandbox blocked, where the user can allow it. The call is then decided on again."""
    changes: object = None
    """For a command that ran in a layer: what it changed there, as its tool knows it; the call is then decided on
    again, about that. None: nothing."""

    @property
    def line(self) -> str:
        """How it went, on one line; "" where nothing short can be said."""
        short = "\n" not in self.for_user and len(self.for_user) <= _SHORT
        return self.summary or (self.for_user if short else "")


@dataclass(frozen=True)
class SearchAnswer:
    """What a search of the web found."""

    text: str
    """An answer in words; "" when there are only pages."""
    sources: Sequence[Source]


@dataclass(frozen=True)
class AgentLabel:
    """A sub-agent, as its calls are marked: so the user knows who asks, and edits of different agents stay apart."""

    agent_id: str
    """Unique in the session it works for."""
    name: str
    turn_id: str
    """Of the turn it works for: what it does is undone and reviewed as part of that."""


async def _always() -> bool:
    return True


@dataclass
class CallContext:
    """What one call gets from the loop. The workspace and whatever else belongs to the session is reached through the
    tool instance."""

    call_id: str
    turn_id: str
    """Of a sub-agent's call: the turn it works for."""
    step: int
    agent: AgentLabel | None = None
    """The sub-agent that calls; None: the session's own agent."""
    output: Callable[[str], None] = field(default=lambda text: None)
    """Shows live output to the user."""
    movable: Callable[[], None] = field(default=lambda: None)
    """Shows the user that the command which runs can be put in the background."""
    accept_all: bool = True
    """For tools that make proposals. True: policy or the user allowed the whole call. False: the hunks were decided
    one by one, and `run` only reports."""
    by_user: bool = False
    """The user decided on the call, not a rule."""
    edited: bool = False
    """Its command line is the user's own."""
    decision: Decision | None = None
    """What was decided on the call; None when it does not run in a turn."""
    allowed: SubjectFilter = list
    """Returns those of the subjects that policy allows without asking."""
    denied: SubjectFilter = field(default=lambda subjects: [])
    """Returns those of the subjects that policy denies."""
    guarded: SubjectFilter = field(default=lambda subjects: [])
    """Returns those of the subjects that a rule beyond the built-in ones denies or asks about."""
    preview: Preview | None = None
    """The preview that was decided on; None when the tool does not run in a turn."""
    ran: Outcome | None = None
    """How the call went when it was run before: what it is decided on again for."""
    still_valid: Callable[[], Awaitable[bool]] = _always
    """Whether the call would still do what was decided on; for tools with slow preparations between `preview_again` and
    the effect."""

    ask_model: Callable[[str, str], Awaitable[str]] | None = None
    """Asks the utility model (instructions, question) something outside the conversation; the cost counts as the
    turn's. Raises `ModelError`. None when the tool does not run in a turn."""
    search_web: Callable[[str], Awaitable[SearchAnswer | None]] | None = None
    """Has the service of the turn's models search the web; an answer of None: it has no search. Raises
    `ModelError`."""

    @property
    def blocked(self) -> Blocked | None:
        """What the sandbox blocked when the call was run before."""
        return None if self.ran is None else self.ran.blocked

    @property
    def likely_grants(self) -> tuple[Grant, ...]:
        """The grants that the command line probably needs."""
        command = None if self.preview is None else self.preview.command
        return () if command is None else command.likely_grants

    def require_reviewed(self, path: Path) -> None:
        """Raise `ToolError` unless the decision covered that resolved path: a link may lead elsewhere by now."""
        if self.preview is not None and str(path) not in self.preview.reads | self.preview.writes:
            raise ToolError(
                "The path no longer leads to the same place as when this call was approved. Call the tool again."
            )


class LiveCall(Protocol):
    """Shows one call while the model is still writing its arguments. Never fails."""

    @property
    def title(self) -> str | None:
        """As `Tool.title_of`; None until the arguments it needs are known."""
        ...

    def feed(self, text: str) -> str:
        """Take the next piece of the arguments' JSON, cut anywhere. Returns the whole lines that can be shown now and
        were not returned before; "" while there is no title. Linear in all that is fed, and capped."""
        ...


@dataclass(frozen=True)
class ParsedCall(Generic[P]):
    """The validated arguments of a call."""

    params: P
    arguments: dict[str, JsonValue]
    """The arguments as the model wrote them, but under the tool's own names: rules match and clients show these."""
    note: str = ""
    """For the model, with the result: which arguments were ignored; "" for none."""


class Tool(ABC, Generic[P]):
    """One instance serves one session and keeps no state between calls.

    The loop asks the instance for everything, so a tool may be known only at run time (say, a server's). Such a tool
    sets `name`, `effect` and `description` on the instance and overrides `spec` and `parse`."""

    name: str
    effect: Effect
    description: str
    """For the model: what the tool does, when to use it, its limits."""
    params: type[P]
    freeform: Freeform | None = None
    """How the model may call it without JSON, if it may."""
    lead: str = ""
    """What introduces its result to the model where no call of the model led to it; "" for the usual words."""
    waits: bool = False
    """It is not looked at before the earlier calls of its step have ended."""
    delegates: bool = False
    """It looks at files, and may change them, by calls of its own."""

    def spec(self) -> ToolSpec:
        """The tool as the model sees it; the same to the byte in every run."""
        return self._spec

    @functools.cached_property
    def _spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, tool_schema(self.params), self.freeform)

    def parse(self, arguments: Mapping[str, JsonValue]) -> ParsedCall[P]:
        """Validate the arguments of a call. No effect, no waiting. Raises `ToolError`, which says what to correct."""
        try:
            normalized = normalize_arguments(self.params, tool_schema(self.params), arguments)
        except ValueError as error:
            raise ToolError(f"Wrong arguments for {self.name}: {error}. Correct them and call again.") from error
        try:
            return ParsedCall(
                self.params.model_validate(normalized.arguments),
                normalized.arguments,
                normalized.note,
            )
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(str(part) for part in fault['loc']) or 'arguments'}: {fault['msg']}"
                for fault in error.errors(include_url=False, include_input=False)
            )
            note = f" {normalized.note}" if normalized.note else ""
            raise ToolError(f"Wrong arguments for {self.name}: {faults}. Correct them and call again.{note}") from error

    def target(self, arguments: Mapping[str, JsonValue]) -> "tuple[AnyTool, Mapping[str, JsonValue]]":
        """The tool that a call is about, with its arguments: this one, unless it stands for others. What is shown,
        decided on and run is the target; only the result goes to the model under the name it called. Raises
        `ToolError`."""
        return self, arguments

    def stands_for(self, name: str) -> "AnyTool | None":
        """The tool of that name, if this one stands for it: some models call it without this one."""
        return None

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        """One line for the user while there is no preview yet; the arguments are not validated."""
        return self.name

    def with_command(self, arguments: Mapping[str, JsonValue], command: str) -> dict[str, JsonValue]:
        """The arguments with the user's own command line. For tools whose previews have a `command`."""
        raise NotImplementedError

    def live_call(self) -> LiveCall | None:
        """A `LiveCall` that shows one call while the model writes it; None when there is nothing worth showing."""
        return None

    @abstractmethod
    async def preview(self, params: P, call: CallContext) -> Preview:
        """Say what the call would do, without any effect. Raises `ToolError` when it is clear that it cannot work."""

    async def preview_again(self, params: P, call: CallContext) -> Preview | None:
        """The preview again, just before the call runs, for tools whose effect may have changed since the decision.
        None: the effect cannot have changed."""
        return None

    @abstractmethod
    async def run(self, params: P, call: CallContext) -> Outcome:
        """Do it. Called only after policy or the user allowed it. It is cancelled by cancelling its task, and must then
        leave nothing half done. Raises `ToolError` for failures the model should be told of."""

    async def reject(self, params: P, call: CallContext, reason: str) -> str | None:
        """The call will not run: undo what `preview` prepared. `reason` says why. May return a text for the model."""
        return None


AnyTool = Tool[Any]


_UNTOLD = frozenset(
    {
        *("title", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minLength", "maxLength", "minItems", "maxItems"),
    }
)
"""What no schema tells: titles, and limits, which `Tool.parse` holds and its error states. A limit that a model must
know before is in the description."""


@functools.cache
def tool_schema(params: type[BaseModel]) -> dict[str, Any]:
    """A JSON Schema that all vendors accept: one object, no `$ref`, no titles, no null types, no top-level unions.

    It is part of every request, so it says nothing that `Tool.parse` says to the few calls that need it: no limits, no
    ban on other arguments, and no default that means the same as nothing (false, 0, "", []).

    Cached, so do not change it: every session has all tools, and making their schemas takes 6 ms."""
    schema = params.model_json_schema()
    definitions: dict[str, Any] = schema.pop("$defs", {})

    def clean(node: Any) -> Any:
        match node:
            case list():
                return [clean(item) for item in cast("list[Any]", node)]
            case {"$ref": str(reference), **rest}:
                return clean({**definitions[reference.rsplit("/", 1)[-1]], **rest})
            case {"anyOf": [option, {"type": "null"}], **rest}:  # an absent key means None
                rest.pop("default", None)
                return clean({**option, **rest})
            case dict():
                return {key: value if key == "default" else clean_member(key, value) for key, value in _members(node)}
            case _:
                return node

    def clean_member(key: str, value: Any) -> Any:
        if key == "properties":
            return {name: clean(member) for name, member in cast("dict[str, Any]", value).items()}
        return clean(value)

    cleaned = clean(schema)
    cleaned.pop("description", None)
    cleaned.setdefault("properties", {})
    return cleaned


def _members(node: Any) -> list[tuple[str, Any]]:
    """The members of a schema object that matter to a model."""
    return [(key, value) for key, value in cast("dict[str, Any]", node).items() if _matters(key, value)]


def _matters(key: str, value: Any) -> bool:
    match key:
        case "default":
            return bool(value)
        case "additionalProperties":
            return value is not False
        case _:
            return key not in _UNTOLD
