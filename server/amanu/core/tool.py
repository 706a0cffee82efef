"""What a tool is. The loop (`agent/`) sees only this; disk, processes and editors are behind it."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from amanu.core.argument_aliases import normalize_arguments
from amanu.core.command import Command
from amanu.core.model import ToolSpec
from amanu.core.requirements import SandboxRequirements
from amanu_protocol.items import BlobRef, CommandSandbox, Effect, Grant


class Params(BaseModel):
    """Arguments of a tool. Field descriptions are the model's documentation: write them for it."""

    model_config = ConfigDict(extra="forbid")


P = TypeVar("P", bound=Params)


class ToolError(Exception):
    """A failure the model should hear about and can do something about. Any other exception is our bug."""


@dataclass(frozen=True)
class Subject:
    """What a policy rule is matched against: `tool(text)`.

    For file tools `text` is the path relative to its root with `/`; for the shell the exact command.
    """

    tool: str
    effect: Effect
    text: str
    command: Command | None = None
    """Of a command line: the one command of it that is decided on."""
    unclear: bool = False
    """A command line that is not understood: nothing allows it but a user, once."""
    because: str = field(default="", compare=False)
    """Why it is not, a sentence for the user."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)
    """Of the call, as the model wrote them."""


SubjectFilter = Callable[[Iterable[Subject]], list[Subject]]
"""Those of the subjects that policy allows without a question (`permissions/approvals.py`)."""


TrustCheck = Callable[[Path, bytes], bool]
"""Whether the user trusted a workspace's file, named by its path, with that content (`permissions/trust_store.py`)."""


@dataclass(frozen=True)
class Preview:
    """What would happen, found out without any effect."""

    title: str
    """One line for the user: "Edit src/app.py"."""
    subject: Subject
    detail: str
    """In full, for an approval: the command, the path and the diff stat."""
    reads: frozenset[str] = frozenset()
    """Absolute paths this call reads; a call waits for earlier calls of its step that write one of them."""
    writes: frozenset[str] = frozenset()
    """Absolute paths this call writes."""
    proposal_id: str | None = None
    """The edits are a proposal, decided hunk by hunk."""
    extra_subjects: tuple[Subject, ...] = ()
    """What else the call touches: policy must allow each of them too (several files read at once)."""
    digest: str = ""
    """Of everything that is decided on, the bytes of files included. Computed again just before it runs: another one
    is another question."""
    requirements: SandboxRequirements | None = None
    """Of a command: what it may do."""
    sandbox: CommandSandbox | None = None
    """Of a command: what will hold it."""
    grants: tuple[Grant, ...] = ()
    """What the user may add to a yes."""
    likely_grants: tuple[Grant, ...] = ()
    """Of those, what it will hardly work without."""
    note: str = ""
    """For the model, with the result: how the call was understood."""


@dataclass(frozen=True)
class Outcome:
    """What a call did: once for the model, once for the user."""

    for_model: str
    for_user: str
    blob: BlobRef | None = None
    """The whole output when `for_user` or `for_model` is only part of it."""
    refused: bool = False
    """The user decided against all of it, piece by piece."""
    is_error: bool = False
    """The tool worked, the thing failed (a command with exit code 1): the model is told as an error."""
    sandbox: CommandSandbox | None = None
    """Of a command: what held it."""


async def _always() -> bool:
    return True


@dataclass
class CallContext:
    """What one call has at hand. `workspace` and friends are reached through the tool instance, which is made
    for one session."""

    call_id: str
    turn_id: str
    step: int
    output: Callable[[str], None] = field(default=lambda text: None)
    """Show live output to the user."""
    accept_all: bool = True
    """For tools that make proposals: True when policy or the user allowed the whole call; False when the
    hunks were decided one by one (`run` then only reports)."""
    by_user: bool = False
    """The call was decided by the user, not by a rule."""
    allowed: SubjectFilter = list
    denied: SubjectFilter = field(default=lambda subjects: [])
    """Those of the subjects that policy denies, whoever asks."""
    preview: Preview | None = None
    """What was decided about; there when the tool runs in a turn."""
    still_valid: Callable[[], Awaitable[bool]] = _always
    """Whether the call would still do what was decided on. For tools that take their time between `again` and the
    effect."""

    def require_reviewed(self, path: Path) -> None:
        """Raise `ToolError` unless that resolved path is one the decision was about: a link may lead elsewhere by
        now."""
        if self.preview is not None and str(path) not in self.preview.reads | self.preview.writes:
            raise ToolError("The path leads to another place than when this call was decided on. Call again.")


class CallDraft(Protocol):
    """What of a call can be shown while the model still writes its arguments. Of one call; never fails."""

    @property
    def title(self) -> str | None:
        """As `Tool.title_of`, once the arguments are known that it needs; None before."""
        ...

    def feed(self, text: str) -> str:
        """Take the next piece of the arguments' JSON, cut anywhere. Returns what can be shown beyond what it returned
        before: whole lines, "" as long as there is no title. Linear in all that is fed, and capped."""
        ...


@dataclass(frozen=True)
class ParsedCall(Generic[P]):
    """The arguments of a call, understood."""

    params: P
    arguments: dict[str, JsonValue]
    """As the model wrote them, under the tool's own names: what rules are matched against and clients show."""
    note: str = ""
    """For the model, with the result: what of its arguments was ignored."""


class Tool(ABC, Generic[P]):
    """One instance serves one session. Stateless between calls but for what it was given.

    The loop asks the instance for everything, so that a tool may be known only at run time (one of a server): such a
    tool sets `name`, `effect` and `description` on itself, and overrides `spec` and `parse`."""

    name: str
    effect: Effect
    description: str
    """For the model: what it does, when to use it, limits."""
    params: type[P]

    def spec(self) -> ToolSpec:
        """The tool as the model sees it; byte-stable between runs."""
        return ToolSpec(self.name, self.description, tool_schema(self.params))

    def parse(self, arguments: Mapping[str, JsonValue]) -> ParsedCall[P]:
        """Understand the arguments of a call. No effect, no waiting. Raises `ToolError`, which says what to correct."""
        try:
            arguments_by_name = normalize_arguments(self.params, arguments)
        except ValueError as error:
            raise ToolError(f"Wrong arguments for {self.name}: {error}. Correct them and call again.") from error
        try:
            return ParsedCall(
                self.params.model_validate(arguments_by_name.arguments),
                arguments_by_name.arguments,
                arguments_by_name.note,
            )
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(str(part) for part in fault['loc']) or 'arguments'}: {fault['msg']}"
                for fault in error.errors(include_url=False, include_input=False)
            )
            note = f" {arguments_by_name.note}" if arguments_by_name.note else ""
            raise ToolError(f"Wrong arguments for {self.name}: {faults}. Correct them and call again.{note}") from error

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        """One line for the user before there is a preview, of arguments that nobody has checked."""
        return self.name

    def draft(self) -> CallDraft | None:
        """What shows a call while it is written; None when there is nothing worth showing."""
        return None

    @abstractmethod
    async def preview(self, params: P, call: CallContext) -> Preview:
        """Say what would happen. No effect; raises `ToolError` when it is already clear that it cannot work."""

    async def preview_again(self, params: P, call: CallContext) -> Preview | None:
        """Just before it runs, what would happen now, if that may be something else than was decided on. None: what
        `run` does cannot differ from it."""
        return None

    @abstractmethod
    async def run(self, params: P, call: CallContext) -> Outcome:
        """Do it. Called only after policy or the user allowed it. Cancelled by task cancellation; must leave
        nothing half done. Raises `ToolError` for failures the model should hear about."""

    async def reject(self, params: P, call: CallContext, reason: str) -> str | None:
        """The user or a rule said no; undo what `preview` prepared. May return text for the model."""
        return None


AnyTool = Tool[Any]


@functools.cache
def tool_schema(params: type[BaseModel]) -> dict[str, Any]:
    """JSON Schema that all vendors accept: one object, no `$ref`, no titles, no null types, no top-level unions.

    Made once, not to be changed: each session has all tools, and making all of their schemas takes 6 ms."""
    schema = params.model_json_schema()
    definitions: dict[str, Any] = schema.pop("$defs", {})

    def clean(node: Any) -> Any:
        match node:
            case list():
                return [clean(item) for item in cast("list[Any]", node)]
            case {"$ref": str(reference), **rest}:
                return clean({**definitions[reference.rsplit("/", 1)[-1]], **rest})
            case {"anyOf": [option, {"type": "null"}], **rest}:  # an absent key says None
                rest.pop("default", None)
                return clean({**option, **rest})
            case dict():
                return {key: value if key == "default" else clean_member(key, value) for key, value in _members(node)}
            case _:
                return node

    def clean_member(key: str, value: Any) -> Any:
        if key == "properties":
            return {name: clean(member) for name, member in _members(value)}
        return clean(value)

    cleaned = clean(schema)
    cleaned.pop("description", None)
    cleaned.setdefault("properties", {})
    return cleaned


def _members(node: Any) -> list[tuple[str, Any]]:
    """The members of a schema object that mean something to a model."""
    members = cast("dict[str, Any]", node).items()
    return [(key, value) for key, value in members if not (key == "title" and isinstance(value, str))]
