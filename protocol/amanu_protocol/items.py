"""The visible things of a session, and what a user decides about them.

Items go *started → deltas → completed*; the completed form is authoritative.
"""

from collections.abc import Collection
from typing import Annotated, Any, Literal, cast

from pydantic import Field, JsonValue, computed_field, field_serializer, model_validator

from amanu_protocol.base import AboutLines, LineRange, Wire

Mode = Literal["plan", "ask", "acceptEdits", "draft", "auto"]
"""A mode is a set of policy rules: read-only · ask before effects · edits allowed · changes go into a draft ·
everything allowed that no rule denies or asks about."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model thinks before it answers, from least to most."""

ServiceTier = Literal["standard", "fast", "flex"]
"""A way to serve requests: at the usual price · faster, at a higher one · when there is room, at a lower one."""

Effect = Literal["read", "write", "run"]
"""What a tool can do to the world: nothing · change files · start a process."""

Scope = Literal["once", "turn", "session", "workspace", "user"]
"""For how long an answer to an approval is remembered."""


Tone = Literal["plain", "good", "warning", "bad"]
"""How a line is meant, for its colour."""


class Line(Wire):
    """A line the daemon words for the user: without line feeds, and with whatever is hidden in it still hidden."""

    tone: Tone
    text: str


# Attachments ---------------------------------------------------------------------------------------


class FileAttachment(AboutLines):
    """A file, or lines of it, that goes with a prompt."""

    kind: Literal["file"] = "file"
    path: str
    lines: LineRange | None = None
    """None: all of it."""


class SelectionAttachment(AboutLines):
    """Text the user selected in an editor, as it stood there (saved or not)."""

    kind: Literal["selection"] = "selection"
    path: str
    lines: LineRange
    text: str


class BlobRef(Wire):
    """A payload too big for an event: fetch it with `amanu/blob/get`."""

    blob_id: str
    size: int
    """Bytes."""


class ImageAttachment(Wire):
    """A picture that goes with a prompt. A client sends `data`; the session's state tells `blob` instead."""

    kind: Literal["image"] = "image"
    name: str
    """For the user: a file's name, or "Pasted image"."""
    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    data: str | None = None
    """The file's bytes, base64."""
    blob: BlobRef | None = None


class CommentAttachment(AboutLines):
    """A remark of the user's about lines of a file, or of the text a proposal gives it."""

    kind: Literal["comment"] = "comment"
    path: str
    lines: LineRange
    text: str
    """Those lines, as the user saw them."""
    comment: str
    proposal_id: str | None = None
    """The lines are of this proposal's text, which need not be in the file."""


Attachment = Annotated[
    FileAttachment | SelectionAttachment | ImageAttachment | CommentAttachment, Field(discriminator="kind")
]


# Decisions -----------------------------------------------------------------------------------------


class ScopeOffer(Wire):
    """One way to answer an approval: the scope, and the text of the rules it would save, one a line ("" for once)."""

    scope: Scope
    rule: str
    explanation: str = ""
    """A sentence saying what that allows from then on."""


Grant = Literal["network", "unsandboxed"]
"""What a user may add to an approval: the network · no sandbox at all. A rule saved with it grants it, too."""


class ApprovalAnswer(Wire):
    """One button below an approval. Its fields go into `amanu/approval/resolve` as they are, with the approval's
    `toolCallId` and `digest`."""

    label: str
    """The whole of it, in the user's words: "Allow once with network access"."""
    action: Literal["allow", "reject", "finish", "review", "editCommand"]
    """The `decision` to send; `editCommand`: `allow`, with the user's `command`. `review` sends nothing: it shows the
    proposal's changes, which are decided there."""
    scope: Scope = "once"
    grants: list[Grant] = []
    rule: str = ""
    """The text of the rules it saves, one a line; "" for none. It may be sent as the user edited it."""
    explanation: str = ""
    """Sentences saying what it means beyond its label; "" for nothing."""
    mode: Mode | None = None
    """The mode a plan is carried out in."""
    fresh_context: bool = False
    """The model forgets the conversation before a plan."""
    asks: Literal["", "reason", "command"] = ""
    """The field whose text the user gives first. A reason may stay empty; a command starts as the approval's."""
    further: bool = False
    """Rarely wanted, as what would be granted needlessly: left out, or behind "More options", where there is room for a
    few."""


SandboxTier = Literal["bubblewrap", "landlock", "seatbelt", "none"]
"""What holds a command. `none`: it runs with the user's own permissions."""


class CommandPlace(Wire):
    """The place of a command: where it runs, what it finds there, and what becomes of what it writes."""

    base: Literal["machine", "workspace", "copy", "fork"]
    """`machine`: outside the sandbox · `workspace`: the workspace itself · `copy`: the session's private copy of it ·
    `fork`: a copy for a sub-agent, or for this command alone."""
    writes: bool
    """False: it can write nothing but temporary files."""
    finds: Literal["disk", "saved", "session"]
    """`disk`: the workspace's files · `saved`: the same, on a copy · `session`: also unsaved text, undecided edits and
    the draft."""
    then: Literal["stays", "proposed", "drafted", "dropped"]
    """The fate of what it writes."""
    network: bool
    secrets: bool
    """It may read the workspace's files that hold secrets."""
    git: Literal["none", "files", "checkout", "settings"]
    """The part of git's own files that it may write; each level includes those before it."""
    tried: bool
    """Nobody was asked: what the sandbox blocks becomes a question."""
    words: str
    """The same for the user: "on a private copy of the workspace; what it changes is proposed"."""


class CommandSandbox(Wire):
    """What holds a command: the sandbox it runs in, or would."""

    tier: SandboxTier
    writes: Literal["nothing", "workspace", "everything"]
    network: bool
    summary: str
    """For the user: what the command can do, beginning with "Sandboxed" or "Not sandboxed"."""
    brief: str = ""
    """The same in a few words, to go on another line."""
    place: CommandPlace | None = None
    """The place of the command; None: this is about commands in general, and each gets its place when it comes."""


class CommandPart(Wire):
    """One command of a command line, and what is thought of it."""

    text: str
    """Control characters made visible."""
    decision: Literal["allow", "ask", "deny"]
    rule: str
    reason: str
    """A sentence for the user."""


class Approval(Wire):
    """A question to the user, held as session state until somebody or something settles it."""

    tool_call_id: str
    title: str
    detail: str
    """What will happen, in full: the command, the path; plain text, control characters made visible."""
    effect: Effect
    rule: str
    """The rule that made this a question."""
    scopes: list[ScopeOffer]
    proposal_id: str | None = None
    asked_at: int
    """Milliseconds since the epoch. Answers within half a second of it are not taken."""
    document: str | None = None
    """For a plan: the absolute path of its file, which clients open as a document. `detail` is its text, as it stands
    in the editor that has it open."""
    digest: str = ""
    """Of all that is asked about: an approval is for exactly this, and names it. Changes with what it is about; then
    the question is asked again."""
    command: str | None = None
    """The command line that would run, for the user to edit; None where there is none, or where part of it would not be
    seen in an editor."""
    original_command: str | None = None
    """The model's command line, when the user has changed it to `command`."""
    parts: list[CommandPart] = []
    """Of a command line: each command in it, also those behind wrappers and in substitutions."""
    sandbox: CommandSandbox | None = None
    """Of a command: what will hold it."""
    blocked: str = ""
    """For a command that has already run: what it needs that the sandbox blocked, as a predicate ("needs network access
    (…)"); "" if nothing was blocked."""
    grants: list[Grant] = []
    """What the user may add to an approval."""
    likely_grants: list[Grant] = []
    """Of those, what it probably needs."""
    answers: list[ApprovalAnswer] = []
    """Every way to answer it, in the order to draw them, the likeliest first. A client composes none of its own."""
    lines: list[Line] = []
    """For the user, all there is to know besides `title` and `detail`: which sub-agent wants it, a line for each of
    `parts`, then the model's command where the user changed it, what holds it, what it probably needs, and the rule
    that made this a question."""
    agent_id: str | None = None
    """The sub-agent that wants to do it; None: the session's own model."""
    agent: str = ""
    """Its name; "" for none."""


class Decision(Wire):
    """How an approval was settled, by whom or by which rule."""

    outcome: Literal["allowed", "reviewed", "rejected", "denied", "cancelled", "edited"]
    """`edited`: the user changed the command; the call goes on with `command`, and may be asked about anew."""
    by: Literal["user", "rule"]
    client: str | None = None
    """Name of the client the user used, e.g. "Visual Studio Code"."""
    rule: str | None = None
    scope: Scope | None = None
    reason: str | None = None
    """The user's words when rejecting; they go to the model. `reviewed`: why nothing could be applied."""
    grants: list[Grant] = []
    """What the user added to an approval."""
    trial: bool = False
    """Allowed only as a trial run, on a private copy of the workspace or with nothing writable (`place.tried`)."""
    place: CommandPlace | None = None
    """The place of a command that was allowed."""
    command: str | None = None
    """The user's own command line, which took the place of the model's."""
    mode: Mode | None = None
    """For a plan: the mode it is carried out in."""
    fresh_context: bool = False
    permitted_by: str | None = None
    """Denied because nobody could be asked: the rule that would have allowed it, "" where none could."""
    summary: str = ""
    """For the user, on one line: what was decided and by what, all but `client`."""


# Items ---------------------------------------------------------------------------------------------


class UserMessage(Wire):
    """What the user said. `steer` marks a message put into a running turn."""

    kind: Literal["userMessage"] = "userMessage"
    item_id: str
    turn_id: str
    text: str
    attachments: list[Attachment]
    steer: bool


class Thought(Wire):
    """Reasoning the model shows. `subject` is its first bold heading, "" if it has none."""

    kind: Literal["thought"] = "thought"
    item_id: str
    turn_id: str
    subject: str
    text: str


class Answer(Wire):
    """Text the model says to the user, Markdown."""

    kind: Literal["answer"] = "answer"
    item_id: str
    turn_id: str
    text: str
    agent_id: str | None = None
    """The sub-agent whose work this is: it belongs below the call that started it. None: the session's own."""


ToolCallState = Literal[
    "validating", "awaitingApproval", "scheduled", "executing", "succeeded", "failed", "cancelled", "rejected"
]


class ToolCall(Wire):
    """One use of a tool. Its `itemId` is the `toolCallId`."""

    kind: Literal["toolCall"] = "toolCall"
    item_id: str
    turn_id: str
    tool: str
    title: str
    """One line for the user, e.g. "Read src/app.py". The tool's name until the arguments are known."""
    effect: Effect
    arguments: dict[str, JsonValue]
    state: ToolCallState
    output: str
    """What the user sees of the work: live while executing, capped; final when completed."""
    blob: BlobRef | None = None
    """The whole output, when `output` is only part of it."""
    summary: str = ""
    """How it went, for the user, on one short line beside the title: "lines 120–260", "14 matches in 5 files"; of a
    command its exit code if it failed, and the last line it printed. "" while it runs, or for nothing to say."""
    proposal_id: str | None = None
    decision: Decision | None = None
    error: str | None = None
    sandbox: CommandSandbox | None = None
    """Of a command that ran: what held it."""
    movable: bool = False
    """A command that has been running for a second, and that `amanu/job/begin` can put in the background."""
    agent_id: str | None = None
    """The sub-agent whose work this is: it belongs below the call that started it. None: the session's own."""
    warns: bool = False
    """Whether a part of it failed, as `summary` says, though its exit code is a success: not to be drawn as success."""
    not_undone: list[str] = []
    """What it changed that cannot be undone, as names shown to the user: "logo.png", "the folder old"."""


class Todo(Wire):
    """One thing the model means to do."""

    text: str
    status: Literal["pending", "inProgress", "done", "cancelled"]


class TodoList(Wire):
    """What the model means to do, whole; each completion replaces the last. The session's state keeps the latest
    list."""

    kind: Literal["todoList"] = "todoList"
    item_id: str
    turn_id: str
    todos: list[Todo]
    summary: str = ""
    """For the user, on one line: how far it is, and what is in progress."""


class Notice(Wire):
    """Something the daemon itself says in the conversation: a limit, a retry that gave up, a restart."""

    kind: Literal["notice"] = "notice"
    item_id: str
    turn_id: str | None = None
    level: Literal["info", "warning", "error"]
    code: str
    """Stable word for programs, e.g. "stepLimit"; the error kinds of `errors.py` are among them."""
    text: str
    detail: str = ""
    """What there is to read behind it on demand, Markdown, e.g. the summary a compaction made; "" for nothing."""
    agent_id: str | None = None
    """The sub-agent whose work this is: it belongs below the call that started it. None: the session's own."""


class Source(Wire):
    """Something an answer rests on."""

    title: str
    url: str = ""
    """"" when it has none, as a passage of a document."""
    quote: str = ""


class Citations(Wire):
    """What the answer before it cites or was grounded on, as the model's service says; or the pages that the search
    before it found."""

    kind: Literal["citations"] = "citations"
    item_id: str
    turn_id: str
    sources: list[Source]


class QuestionOption(Wire):
    """A ready answer."""

    label: str
    """Also the answer that is sent."""
    description: str = ""


class QuestionField(Wire):
    """One thing that is asked. Its answer is a string; for `choices` a list of strings, for `confirm` a boolean."""

    field_id: str
    kind: Literal["text", "choice", "choices", "confirm", "file"]
    """Some text · one of the options · any number of them · yes or no · a path, absolute or in the workspace."""
    header: str = ""
    """A word or two, for a tab or a line's beginning."""
    text: str
    """The question."""
    options: list[QuestionOption] = []
    other: bool = False
    """The user may also answer with a text of their own."""
    required: bool = True
    placeholder: str = ""
    default: JsonValue | None = None
    """The answer if none is given."""


class Question(Wire):
    """Questions to the user, answered together. Open until somebody answers, declines or cancels its turn: it has no
    time limit, and a restart of the daemon leaves it open. Its `itemId` is the `questionId`."""

    kind: Literal["question"] = "question"
    item_id: str
    turn_id: str
    tool_call_id: str | None = None
    """The call that waits for it."""
    asker: str
    """For the user: "Amanu", or whoever else wants to know."""
    title: str
    """One line for the user."""
    fields: list[QuestionField]
    state: Literal["open", "answered", "declined", "cancelled"] = "open"
    answers: dict[str, JsonValue] = {}
    """By `fieldId`, once answered."""
    note: str = ""
    """What the user added when answering or declining."""
    client: str | None = None
    """Name of the client that was used."""
    summary: str = ""
    """For the user, on one line: what became of it; "" while it is open."""
    agent_id: str | None = None
    """The sub-agent whose work this is: it belongs below the call that started it. None: the session's own."""


Item = Annotated[
    UserMessage | Thought | Answer | ToolCall | TodoList | Notice | Citations | Question,
    Field(discriminator="kind"),
]


# Proposals -----------------------------------------------------------------------------------------

HunkState = Literal["pending", "accepted", "applied", "rejected", "conflicted", "undoing", "reverted"]
"""`accepted` and `undoing` last as long as the file is being written. `reverted`: applied, and taken back
since, in the file itself or by undo."""

PRESENT_STATES: Collection[HunkState] = ("accepted", "applied", "undoing")
"""States of the hunks that count as being in the file. One that is carried out or undone just now is, so that it moves
only once."""
PROPOSED_STATES: Collection[HunkState] = ("pending", "conflicted", *PRESENT_STATES)
"""States of the hunks that the proposed text has."""


class Finding(AboutLines):
    """A finding of a language server or linter about some lines."""

    lines: LineRange
    severity: Literal["error", "warning", "information", "hint"]
    message: str
    source: str = ""
    """Who says it: "Pylance", "ruff"."""
    code: str = ""


class Check(Wire):
    """What a change does to the findings of a file: of the proposed text before it is decided (`proposed`), or of the
    file after it was applied (`applied`). Only what is new, and how many are gone."""

    checker: str
    """For the user: "ruff", "pyright"; the editor's name for what its language servers say."""
    about: Literal["proposed", "applied"]
    state: Literal["running", "done", "failed"]
    added: list[Finding] = []
    """Lines of the text that was checked."""
    fixed: int = 0
    message: str | None = None
    """Why it failed."""
    summary: str = ""
    """For the user, to go after the checker's name: "adds 1 error, fixes 2"."""


Waits = Literal["decision", "review", ""]
"""The decision a change waits for: accept or reject · keep or undo, as a rule applied it · none."""

Verb = Literal["accept", "reject", "keep", "undo", "redo"]
"""The decisions that a change may take."""


def _waits(state: HunkState, reviewed: bool) -> Waits:
    if state in ("pending", "conflicted"):
        return "decision"
    return "review" if state == "applied" and not reviewed else ""


def _verbs(state: HunkState, reviewed: bool) -> list[Verb]:
    match state:
        case "pending" | "conflicted":
            return ["accept", "reject"]
        case "applied":
            return ["undo"] if reviewed else ["keep", "undo"]
        case "reverted":
            return ["redo"]
        case _:
            return []


class Hunk(Wire):
    """One contiguous change: `oldText` becomes `newText`, both whole lines with their ends. When the user changed the
    lines it is about, others are at `lines` instead of `oldText`: it is in conflict then."""

    hunk_id: str
    old_text: str
    new_text: str
    state: HunkState
    edited_by_user: bool
    reason: str | None = None
    """Why it was rejected (the user's words, or the rule), conflicted, found taken back in the file, or could not be
    undone (ours)."""
    applied_text: str | None = None
    """What was applied, where the file says something else by now: `newText` is what became of it."""
    reviewed: bool = False
    """Of an applied hunk: the user approved it, before it was applied or after. Where not, a rule applied it, and
    it waits to be kept or undone. Of a rejected one: the user said no, not a rule."""
    explanation: str = ""
    """What it is for, in the model's words."""
    lines: LineRange
    """Its place in the file as it was last seen (`baseVersion` of an open document): the new lines of an applied hunk,
    else the old ones."""
    proposed_lines: LineRange
    """Its place in the proposed text, which has every hunk that is not rejected or taken back: the new lines of these,
    the old ones of the others."""

    @computed_field
    @property
    def waits(self) -> Waits:
        return _waits(self.state, self.reviewed)

    @computed_field
    @property
    def verbs(self) -> list[Verb]:
        """The decisions it takes. A conflicted one is tried again when it is accepted; `reason` says why it failed."""
        return _verbs(self.state, self.reviewed)


class ProposedFile(Wire):
    """The change to one file, from a known base to proposed text. The base with the applied hunks is the file's text
    as it was last seen; when the user changes the file, a later version has another base, and its hunks other
    lines."""

    path: str
    """Absolute."""
    change: Literal["edit", "create", "delete", "rename"]
    """All but `edit` have one hunk, the whole file."""
    new_path: str | None = None
    """Absolute; of `rename`. Once that is applied the file is there."""
    base_sha256: str
    """Of the base text's bytes; of nothing for `create`."""
    base_version: int | None = None
    """Document version, when the base was an open buffer."""
    base_text: str | None = None
    """None in a later version of the proposal: unchanged. None with a `baseBlob`: the text is in that blob."""
    base_blob: str | None = None
    """The blob (UTF-8) with a base text of more than 64 K characters: inline, it would be sent again with each edit of
    the file, though few clients need it. If a later version names another blob, the base text has changed."""
    hunks: list[Hunk]
    added: int
    removed: int
    """Line counts over all hunks."""
    encoding: str
    final_newline: bool
    unsaved: bool
    """Applied in an editor that has not saved it."""
    checks: list[Check] = []
    mode: int | None = None
    """Permission bits of the base on disk."""

    @computed_field
    @property
    def present_path(self) -> str:
        """The file's path now: a rename may have been applied."""
        moved = any(hunk.state in PRESENT_STATES for hunk in self.hunks)
        return self.new_path if self.new_path is not None and moved else self.path

    @field_serializer("base_text", when_used="json")
    def _inline_text(self, base_text: str | None) -> str | None:
        return base_text if self.base_blob is None else None

    @model_validator(mode="before")
    @classmethod
    def _read_old_places(cls, fields: Any) -> Any:
        """Hunks in journals of protocol 3 and before have their places in the base instead, as in unified diffs."""
        if not isinstance(fields, dict):
            return fields
        file = cast("dict[str, Any]", fields)
        hunks = cast("list[Any]", file.get("hunks") or [])
        return {**file, "hunks": _placed(hunks)} if any(map(_has_old_place, hunks)) else file


def _has_old_place(hunk: Any) -> bool:
    return isinstance(hunk, dict) and "oldStart" in hunk and "lines" not in hunk


def _placed(hunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    placed: list[dict[str, Any]] = []
    shift, proposed_shift = 0, 0
    for hunk in hunks:
        old_count, new_count = hunk["oldLines"], hunk["newLines"]
        first = hunk["oldStart"] - (old_count > 0)  # a side without lines names the line it comes after
        count = new_count if hunk["state"] in PRESENT_STATES else old_count
        proposed_count = new_count if hunk["state"] in PROPOSED_STATES else old_count
        lines = {"start": first + shift, "end": first + shift + count}
        proposed_lines = {"start": first + proposed_shift, "end": first + proposed_shift + proposed_count}
        placed.append({"lines": lines, "proposedLines": proposed_lines, **hunk})
        shift += count - old_count
        proposed_shift += proposed_count - old_count
    return placed


RowKind = Literal["file", "link", "folder", "mode", "deletion", "rename", "git"]
"""A file that is not text, or too big for hunks · a link · a new folder, empty or with all that is in it · executable
bits · a deleted file, link or folder · the same file under another name · changes to a git repository."""


class RowVersion(Wire):
    """One side of a row: what is at its path."""

    kind: Literal["file", "link", "folder", "repository"]
    size: int = 0
    """Bytes of a file, of all that is in a folder, or of a repository's change as it is stored; 0 in a row about the
    executable bits of a text."""
    mode: int = 0
    """Permission bits of a file."""
    file_id: str = ""
    """The SHA-256 of a file's bytes, or a random id if the file is too large to be hashed; "" if it is not known. The
    id of a new folder with all that is in it; "" for an empty one. The SHA-256 of a repository's change as it is
    stored."""
    target: str = ""
    """The target of a link, as it is written there."""
    picture: BlobRef | None = None
    """The file, if it is a picture that a client can draw."""
    media_type: str = ""
    """The picture's, e.g. "image/png"."""
    made_above: int = 0
    """The number of folders above the path that have to be made for it."""

    @property
    def executable(self) -> bool:
        return bool(self.mode & 0o111)


class RowTurn(Wire):
    """A row as an earlier turn drafted it."""

    turn_id: str
    kind: RowKind
    title: str = ""
    lines: list[Line] = []
    after: RowVersion | None = None
    new_path: str | None = None


class Row(Wire):
    """A change that no hunk shows. It is decided as a whole, in the same states as a hunk."""

    row_id: str
    kind: RowKind
    path: str
    """Absolute; for `git`, the repository's root."""
    new_path: str | None = None
    """Absolute; only for `rename`."""
    before: RowVersion | None = None
    """None: nothing is there. `git` has no `before`; the two sides of `mode` differ only in permission bits, and
    those of `rename` at most in these; its `after` is at the new path."""
    after: RowVersion | None = None
    state: HunkState
    reason: str | None = None
    """The same as a hunk's: why it was rejected, is still open, is in conflict or could not be undone."""
    reviewed: bool = False
    """The same as a hunk's."""
    title: str
    """One line for the user, to go after the path: "binary file, 4,096 bytes", "becomes executable"."""
    lines: list[Line] = []
    """Further lines for the user: the commits of `git`, their files and each ref that moves; or that the change cannot
    be undone."""
    needs: list[str] = []
    """Ids of open rows and hunks without which it cannot be accepted. Accepting it accepts them; rejecting one of them
    rejects it."""
    undecidable: str = ""
    """Why it cannot be decided any more, as a sentence; "" while it can."""
    digest: str
    """A hash of the kind, the paths, both sides and, for `git`, the lines."""
    committed: list[str] = []
    """Only for `git`: absolute paths of the files that its commits change."""
    earlier: list[RowTurn] = []
    """The versions that earlier turns drafted, oldest first; a rewind brings them back."""
    turn_id: str
    """The turn that made the present version."""

    @computed_field
    @property
    def waits(self) -> Waits:
        return _waits(self.state, self.reviewed)

    @computed_field
    @property
    def verbs(self) -> list[Verb]:
        """The decisions it takes; none if it is `undecidable`."""
        return [] if self.undecidable else _verbs(self.state, self.reviewed)

    @computed_field
    @property
    def present_path(self) -> str:
        """Its path now: a rename may have been applied."""
        moved = self.state in PRESENT_STATES
        return self.new_path if self.new_path is not None and moved else self.path

    @property
    def is_folder(self) -> bool:
        return any(side is not None and side.kind == "folder" for side in (self.before, self.after))


class DraftRun(Wire):
    """A command that ran on a draft."""

    command: str
    """On one line."""
    ended: str
    """How it ended, on one line: "exit 0, 3 passed"."""
    failed: bool
    current: bool
    """Whether the draft is still as it was when the command ran."""


class Proposal(Wire):
    """One set of changes, decided whole or hunk by hunk and row by row, before or after it is applied."""

    proposal_id: str
    turn_id: str
    tool_call_ids: list[str]
    version: int
    """Grows with each change of what is decided on. New `checks` come in an event of the same version."""
    state: Literal["pending", "settled"]
    """`settled` when everything was decided; a hunk that was accepted and is in conflict is. Pending again when such a
    hunk fits again."""
    files: list[ProposedFile]
    agent_id: str | None = None
    """The sub-agent that made it; None: the session's own model, or the user."""
    draft: bool = False
    """Whether it was made in draft mode: the session's tools and commands see it before the user decides, and the turn
    does not wait for the decision."""
    runs: list[DraftRun] = []
    """The latest commands that ran on a draft, the last one last."""
    rows: list[Row] = []
    """Changes that no hunk shows."""

    @property
    def changes(self) -> list[Hunk | Row]:
        """All hunks, then all rows."""
        return [*(hunk for file in self.files for hunk in file.hunks), *self.rows]

    @property
    def waiting(self) -> int:
        """Hunks and rows that wait for a decision or, applied by a rule, to be kept or undone."""
        return sum(
            each.state in ("pending", "conflicted") or (each.state == "applied" and not each.reviewed)
            for each in self.changes
        )


# Jobs ----------------------------------------------------------------------------------------------


class Job(Wire):
    """A command that runs, or ran, in the background of a session."""

    job_id: str
    """Unique in the session: "job-1"."""
    tool_call_id: str
    """The call that started it."""
    title: str
    """The command on one line."""
    state: Literal["running", "ended", "stopped"]
    """`stopped`: somebody stopped it, or its session did."""
    started_at: int
    """Milliseconds since the epoch, as `endedAt`."""
    ended_at: int | None = None
    exit_code: int | None = None
    """Negative: the signal that ended it. None while it runs, and when it is not known."""
    port: int | None = None
    """The first TCP port it listens on."""
    tty: bool = False
    """It has a terminal of its own, which takes input."""
    last_line: str = ""
    """Of its output; control characters made visible."""
    output_size: int = 0
    """Bytes of output so far."""
    sandbox: CommandSandbox | None = None
    """What holds it."""
    summary: str = ""
    """For the user, on one line: its port, or how it ended; without `lastLine`."""
    told: bool = False
    """The model knows how it ended."""
    blob: BlobRef | None = None
    """Its output, once it has ended: the beginning and the end of a long one."""


MAX_JOBS = 20
"""Jobs that a session keeps; beyond that, those that ended first are forgotten."""


class SubAgent(Wire):
    """A sub-agent of a session: an agent with a conversation of its own, in a session of its own, that works for a call
    of `run_agent`."""

    agent_id: str
    """Unique in the session: "agent-1"."""
    name: str
    """Of its definition: "investigator"."""
    description: str
    """What it does, in a few words of the model that started it."""
    session_id: str
    """Of its own session, which can be attached to like any other."""
    tool_call_id: str
    """The call that started it."""
    background: bool = False
    """Its call has ended, and it goes on."""
    state: Literal["waiting", "running", "completed", "failed", "cancelled", "interrupted"]
    """`waiting`: for the user, or for its turn among the others. `interrupted`: the daemon died meanwhile."""
    started_at: int
    """Milliseconds since the epoch, as `endedAt`."""
    ended_at: int | None = None
    steps: int = 0
    """Replies of its model so far."""
    cost_usd: float | None = 0
    """So far; None when the price of a model used is not known. Part of the session's own."""
    activity: str = ""
    """What it is doing, on one line."""
    summary: str = ""
    """For the user, on one line: its steps and cost, and how it ended; without `activity`."""
    told: bool = False
    """The model knows how it ended."""
    report: str = ""
    """The text that the model has yet to be told about an agent that ended in the background; "" for none."""

    @property
    def works(self) -> bool:
        return self.state in ("waiting", "running")


MAX_AGENTS = 20
"""Sub-agents that a session keeps; beyond that, those that ended first are forgotten."""


# Session -------------------------------------------------------------------------------------------


class PlanDocument(Wire):
    """The plan of a session: a Markdown file that the model writes in plan mode and the user edits and approves."""

    path: str
    """Absolute."""
    state: Literal["draft", "approved", "done"]
    """`done`: all its steps are done or cancelled."""
    digest: str = ""
    """For an approved plan: SHA-256 of the text the user approved, which is also the id of its blob."""
    turn_id: str = ""
    """For an approved plan: the turn in which it was approved."""


Purpose = Literal["chat", "rewrite"]
"""What a session is for. `rewrite`: one edit at the cursor (`amanu/rewrite/start`)."""


class QueuedPrompt(Wire):
    """A prompt that waits for the running turn to end."""

    prompt_id: str
    text: str
    attachments: list[Attachment]


ContextPart = Literal["system", "tools", "memory", "conversation", "toolOutput", "free", "reserved"]
"""A field of `ContextUse` that counts tokens."""

ContextTier = Literal["roomy", "warn", "mask", "compact"]
"""How full a window is: at `mask` old tool output makes room, at `compact` a summary takes the place of what is old."""


class ServerTokens(Wire):
    """What the tools of one MCP server take of a model's window."""

    name: str
    tokens: int


class ContextUse(Wire):
    """What the next request would take of the model's window, in tokens. Estimates, calibrated on what the service
    counted; together they are the window."""

    system: int
    """The system prompt without project memory."""
    tools: int
    """Descriptions of the tools."""
    memory: int
    """Project memory (AGENTS.md and its like)."""
    conversation: int
    tool_output: int
    reserved: int
    """Kept free for the reply."""
    free: int
    tier: ContextTier
    servers: list[ServerTokens] = []
    """Parts of `tools`: MCP servers, the largest first. Not those whose tools the model searches."""


class Spend(Wire):
    """Tokens and money of one step or turn."""

    input_tokens: int
    """Not from a cache."""
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    """Without thoughts."""
    thought_tokens: int
    tool_tokens: int
    """Of the input, what tools of the model's service put in."""
    cost_usd: float | None = None
    """None when the price of a model used is not known."""
    summary: str = ""
    """For the user, on one line."""


class Usage(Wire):
    """Tokens and money of a session so far; `contextTokens` is what the last request took of the window."""

    input_tokens: int
    """Not from a cache."""
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    """Without thoughts."""
    thought_tokens: int
    cost_usd: float | None = None
    """None when the price of a model used is not known."""
    context_tokens: int
    context_window: int
    tool_tokens: int = 0
    """Of the input, what tools of the model's service put in."""
    context: ContextUse | None = None
    summary: str = ""
    """For the user, on one line: what was spent."""
    cost: str = ""
    """`costUsd` for the user."""
    percent: int | None = None
    """How full the window is, of what there is room for: the window without what is reserved for the reply. None: not
    known."""
    fullness: str = ""
    """The same in words."""


class Retry(Wire):
    """A model request that failed and will be tried again."""

    attempt: int
    """The attempt that comes next, 2 for the first retry."""
    reason: str
    at: int
    """When, milliseconds since the epoch."""


class LongPrompt(Wire):
    """Price multipliers for a request whose prompt, cached tokens included, exceeds a threshold."""

    above: int
    """The threshold in tokens; a prompt of exactly this length still has the normal price."""
    input: float
    """Multiplies the prices of the whole prompt, and of reading and writing a cache."""
    output: float
    """Multiplies the price of the reply."""


class ModelPrices(Wire):
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class ModelInfo(Wire):
    """A model one can choose."""

    model_id: str
    """`vendor:model`."""
    name: str
    context_window: int
    max_output: int
    input_price: float | None = None
    """US dollars per million tokens; None if not known."""
    output_price: float | None = None
    cache_read_price: float | None = None
    cache_write_price: float | None = None
    long_prompt: LongPrompt | None = None
    """None if a long prompt costs no more by the token than a short one."""
    search_price: float | None = None
    """US dollars for each search of the web that its service makes; None if not known."""
    other_prices: ModelPrices | None = None
    """This release's own prices, if a newer list has others; limits on costs count the dearer of the two."""
    thinking: bool
    images: bool
    efforts: list[Effort] = []
    """How much one can let it think, from least to most; empty where nothing can be chosen."""
    default_effort: Effort | None = None
    service_tiers: dict[ServiceTier, float] = {}
    """The tiers one can choose besides the standard one, each with the factor it multiplies all prices by."""
    available: bool
    """False when a key or a running server is missing; `unavailable` says which."""
    unavailable: str | None = None
    facts_from: str = ""
    """Where window and prices are from and of which day, in words for the user. Of an unknown model it names the one
    whose facts it was given, or says that they are assumed."""
    retires: str | None = None
    """The day its vendor shuts it down, `2026-12-11`."""
    successor: str | None = None
    """What to use instead of a model that is deprecated or shut down, `vendor:model`."""
