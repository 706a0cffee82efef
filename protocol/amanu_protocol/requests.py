"""Parameters and results of the requests and notifications, one section per noun."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from amanu_protocol.base import LineRange, Message, Position, Range
from amanu_protocol.events import EventMessage
from amanu_protocol.items import (
    Attachment,
    Effort,
    Finding,
    Grant,
    Hunk,
    Item,
    Job,
    Line,
    Mode,
    ModelInfo,
    Proposal,
    Purpose,
    Scope,
    ServiceTier,
    Spend,
    SubAgent,
)
from amanu_protocol.state import SessionState

Id = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9._:-]+$")]
"""Minted by whoever starts the thing; a repeat with the same id is harmless."""


class Empty(Message):
    """Nothing to say."""


# initialize: capabilities.experimental.amanu --------------------------------------------------------


class ClientCapabilities(Message):
    """What a client says of itself under `capabilities.experimental.amanu`."""

    protocol: list[int]
    """Versions of this protocol it speaks."""
    editor: list[
        Literal[
            "read", "apply", "diagnostics", "definition", "references", "symbols", "hover", "callHierarchy", "rename"
        ]
    ] = []
    """The `amanu/editor/*` requests it answers. With `read`, its `textDocument/didOpen` documents are ignored: before
    a file in its folders is used, it is asked for the text. With `read` but without `apply`, edits are written to
    disk, and refused while its text differs from the file on disk."""
    trusted_roots: list[str] | None = None
    """Workspace folders (absolute paths) the user has declared trusted in this editor; others are not. Absent or
    null: the editor has no say, and what the user told Amanu counts."""
    ripgrep: str | None = None
    """Path of a ripgrep the editor ships."""


class ServerCapabilities(Message):
    """What the daemon answers in the same place."""

    protocol: int
    """The version in force: the highest both speak."""
    version: str
    methods: list[str]


# session --------------------------------------------------------------------------------------------


class SessionCreateParams(Message):
    session_id: Id
    roots: list[str] = Field(min_length=1)
    """Absolute paths of workspace folders."""
    title: str | None = None
    mode: Mode | None = None
    model_id: str | None = None
    effort: Effort | None = None
    service_tier: ServiceTier | None = None


class SessionParams(Message):
    session_id: Id


class SessionCloseParams(Message):
    session_id: Id
    idle_only: bool = False
    """Only if no client is attached and nothing runs in it; otherwise it stays open. Default false."""


class SessionResult(Message):
    """A session as it is now; events from `fromSeq` on follow."""

    state: SessionState
    epoch: int
    from_seq: int


class OpenQuestion(Message):
    """What a session waits for, as far as a list of sessions tells."""

    tool_call_id: str
    """"" when no call waits for it."""
    title: str
    question_id: str | None = None
    """None: it is about an approval."""


class SessionSummary(Message):
    session_id: str
    title: str
    roots: list[str]
    model_id: str
    created_at: int
    updated_at: int
    status: Literal["idle", "running", "waiting", "interrupted", "closed"]
    """`interrupted`: the daemon died in the middle of its last turn."""
    questions: list[OpenQuestion] = []
    """The decisions and answers it waits for, oldest first."""
    changes: int = 0
    """Hunks that wait for a decision or, applied, to be kept or undone."""
    files: int = 0
    """Files of its edits, those aside that were rejected or undone; `added` and `removed`: their lines."""
    added: int = 0
    removed: int = 0
    cost: str = ""
    """What it has cost so far, for the user. "" when that is not known."""
    last_prompt: str = ""
    """Its beginning."""
    last_answer: str = ""
    """The beginning of the newest one to the last prompt. "" while there is none."""
    archived: bool = False
    """The user is done with it: lists leave it out, until somebody opens it again."""
    parent_session_id: str | None = None
    """Of a sub-agent's session: the session it works, or worked, for."""
    agent: str | None = None
    """Of a sub-agent's session: the name of its definition."""
    purpose: Purpose = "chat"


class SessionListParams(Message):
    root: str | None = None
    """Only sessions of this workspace folder."""
    limit: int = Field(default=50, ge=1, le=500)
    agents: bool = False
    """Also the sessions of sub-agents, which `parentSessionId` tells apart."""
    archived: bool = False
    """Also archived ones, which `archived` tells apart."""


class SessionListResult(Message):
    sessions: list[SessionSummary]


class SessionSearchParams(Message):
    """Any text is fine: all words and "quoted phrases" of it must be found in one place, in any case and without
    accents; the last word (from two letters on) may be the beginning of a longer one, unless a space follows it."""

    text: str = Field(max_length=1000)
    root: str | None = None
    """Only sessions of this workspace folder."""
    limit: int = Field(default=20, ge=1, le=100)
    """Of sessions."""
    agents: bool = False
    """Also in the sessions of sub-agents."""
    archived: bool = False
    """Also in archived ones."""


class ExcerptPart(Message):
    text: str
    """Untrusted, as it was written; on one line."""
    found: bool = False
    """It is what was looked for."""


class FoundPlace(Message):
    kind: Literal["title", "userMessage", "answer", "toolCall", "question", "change"]
    """`title`: the session's. `change`: the lines of an edit, of the first call that made it."""
    item_id: str = ""
    """"" for a title."""
    turn_id: str = ""
    at: int
    excerpt: list[ExcerptPart]
    """What stands there, in pieces to be put together."""


class FoundSession(Message):
    session: SessionSummary
    places: list[FoundPlace]
    """The best ones, at most five."""
    count: int
    """Of all that were found in it."""


class SessionSearchResult(Message):
    sessions: list[FoundSession]
    """The best and latest first."""
    unread: int = 0
    """Sessions that are not looked through yet, as after an update: ask again for what is in them."""


class SessionExportParams(Message):
    session_id: Id
    format: Literal["markdown", "json"] = "markdown"


class SessionExportResult(Message):
    text: str
    """The conversation with its calls, decisions and diffs, secrets removed. `json`: an object with the items and
    proposals of this protocol."""
    name: str
    """The name of a file, without a suffix: made from the title, of letters, digits and `._-`."""


class SessionForkParams(Message):
    """Failures: `itemNotFound` when the session has no such turn; `turnInProgress` when it has not ended."""

    session_id: Id
    """The session that is forked, and stays as it is."""
    new_session_id: Id
    turn_id: str | None = None
    """The last turn that the new session has. None: all that have ended."""


class SessionAttachParams(Message):
    """A session that another process has open (`readOnly`) sends no events: attach again to see its newest state."""

    session_id: Id
    epoch: int | None = None
    since_seq: int | None = None
    """The last event the client has; with the `epoch` it came in."""


class SessionAttachResult(Message):
    """Either the events that were missed, or the whole state."""

    epoch: int
    from_seq: int
    """The first `seq` that will come as `amanu/event`; events or state reach up to the one before."""
    events: list[EventMessage] | None = None
    state: SessionState | None = None


class SessionArchiveParams(Message):
    session_id: Id
    archived: bool = True


class SessionRenameParams(Message):
    session_id: Id
    title: str = Field(min_length=1, max_length=200)


class SessionCompactParams(Message):
    session_id: Id
    focus: str = ""
    """What the summary must not lose, in the user's words."""


class SessionCompactResult(Message):
    status: Literal["started", "queued"]
    """`queued`: a turn runs; it happens at its next step."""


class SessionRecordParams(Message):
    session_id: Id
    path: str | None = None
    """Absolute path of a file that does not exist yet; None ends the recording."""


class SessionSetModeParams(Message):
    session_id: Id
    mode: Mode


class SessionSetModelParams(Message):
    session_id: Id
    model_id: str


class SessionSetEffortParams(Message):
    session_id: Id
    effort: Effort


class SessionSetServiceTierParams(Message):
    session_id: Id
    service_tier: ServiceTier


# prompt, turn ---------------------------------------------------------------------------------------


class PromptSendParams(Message):
    session_id: Id
    prompt_id: Id
    text: str = Field(min_length=1)
    attachments: list[Attachment] = []


class PromptBeginParams(Message):
    """No `sessionId`: the session will be created with its first prompt, and `modelId` is the model it will use, absent
    for the default one."""

    session_id: Id | None = None
    model_id: str | None = None


class PromptSendResult(Message):
    """`started`: a turn runs, `turnId` names it. `queued`: it starts after what is before it. `answered`: it was a
    command for the daemon (`/memory`, `/mcp`), which has answered with a notice."""

    status: Literal["started", "queued", "answered"]
    turn_id: str | None = None


class PromptSteerParams(Message):
    session_id: Id
    prompt_id: Id
    turn_id: str
    """The turn the user saw; −32803 `staleTurn` if it is over, or only makes an edit at the cursor."""
    text: str = Field(min_length=1)
    attachments: list[Attachment] = []


class PromptUnqueueParams(Message):
    session_id: Id
    prompt_id: Id


class TurnCancelParams(Message):
    session_id: Id
    turn_id: str


class TurnCancelResult(Message):
    """The acknowledgement: nothing more is written, run or sent."""

    status: Literal["cancelled", "alreadyEnded"]


# rewrite, commit ------------------------------------------------------------------------------------


class RewriteStartParams(Message):
    """Failures: `permissionDenied` for a file that may not be read without asking; `proposalConflict` when the document
    has another version; `invalidParams` for lines that are not there, or too many."""

    session_id: Id
    """Of the new session. A known id returns that session."""
    prompt_id: Id
    roots: list[str] = Field(min_length=1)
    """Absolute paths of workspace folders."""
    path: str
    """Absolute."""
    version: int | None = None
    """Of the open document the user saw."""
    lines: LineRange
    """Nothing outside them changes. No lines: new ones go in there. So they do in the line after the last one, which
    an editor shows below a final line end."""
    instruction: str = Field(min_length=1, max_length=20_000)
    findings: list[Finding] = []
    """What language servers find in these lines."""
    model_id: str | None = None
    """None: as `[routing] rewrite` says, else the default."""


class RewriteRefineParams(Message):
    """Failures: `staleTurn` when the session rewrites nothing any more; `proposalConflict` when its lines cannot be
    told from what the user changed."""

    session_id: Id
    prompt_id: Id
    instruction: str = Field(min_length=1, max_length=20_000)


class CommitMessageParams(Message):
    """Failures: `invalidParams` when nothing of the diff may be shown to a model."""

    root: str
    """Absolute path of the repository."""
    diff: str = Field(min_length=1)
    """Unified, as git prints it."""
    subjects: list[str] = []
    """First lines of the last commits, for their style."""
    model_id: str | None = None
    """None: as `[routing] utility` says, else the default."""
    session_id: Id | None = None
    """Of an open session whose cost it adds to."""


class CommitMessageResult(Message):
    message: str
    spend: Spend
    left_out: list[str] = []
    """Files whose changes the model was not shown: they may hold secrets."""


# job ------------------------------------------------------------------------------------------------


class JobParams(Message):
    session_id: Id
    job_id: Id


class JobResult(Message):
    job: Job


class JobBeginParams(Message):
    session_id: Id
    tool_call_id: Id | None = None
    """Whose command; None: every command that a running call of the session, or of its sub-agents, waits for."""


class JobBeginResult(Message):
    jobs: list[Job]
    """The commands that go on in the background from now on."""


class AgentParams(Message):
    session_id: Id
    """Of the session it works for."""
    agent_id: Id


class AgentResult(Message):
    agent: SubAgent


class JobOutputParams(Message):
    session_id: Id
    job_id: Id
    offset: int = Field(default=0, ge=0)
    """Byte to start at; `nextOffset` of the last answer."""
    raw: bool = False
    """For a terminal: with its colours and cursor movements."""


class JobOutputResult(Message):
    """What it has printed since `offset`, a piece at a time; "" when there is nothing more yet."""

    text: str
    next_offset: int
    missing: int = 0
    """Bytes before `text` that are no longer kept: of a long output only the beginning and the end are."""


class JobInputParams(Message):
    session_id: Id
    job_id: Id
    text: str = Field(max_length=65_536)
    """As it is typed: a line ends with a carriage return in a terminal, with a line feed otherwise."""


# approval, proposal ---------------------------------------------------------------------------------


class ApprovalResolveParams(Message):
    """An answer about a proposal is about all of it: it also settles the questions of other calls that show the same
    proposal. An approval leaves such a question open if its call needs approval for more. Failure: `approvalNotFound`
    if the daemon was started again since, which ended the turn; the session's proposals still wait."""

    session_id: Id
    tool_call_id: str
    decision: str
    """`allow`, `reject`, or `finish` (end the review, undecided hunks stay open). Any other word is a
    refusal."""
    scope: Scope = "once"
    rule: str | None = None
    """The user's edited text of the rule to save; None takes the one offered for the scope."""
    reason: str | None = None
    digest: str | None = None
    """With `allow`: that of the approval the user saw."""
    grants: list[Grant] = []
    """What the user adds to an approval, of what was offered."""
    command: str | None = Field(default=None, max_length=65_536)
    """With `allow`: the approval's `command` as the user has changed it. It is read and decided on like a new call: it
    runs if it asks for no more than the approval showed, with `scope` `once`; else it is asked about anew."""
    mode: Mode | None = None
    """When approving a plan: the mode to carry it out in, of the options that were offered; None: ask."""
    fresh_context: bool = False
    """When approving a plan: the model forgets the conversation before it."""


class ApprovalResolveResult(Message):
    """`tooSoon`: within half a second of the question; `stale`: an approval of something else than is asked by now, or
    of nothing in particular. Either way the question still stands."""

    status: Literal["resolved", "alreadyResolved", "tooSoon", "stale"]
    outcome: Literal["allowed", "reviewed", "rejected", "denied", "cancelled", "edited"] | None = None
    client: str | None = None
    """Who decided."""
    summary: str = ""
    """`alreadyResolved`: one line that tells the user that the answer came too late, and what was decided."""


class QuestionAnswerParams(Message):
    """Failures: `questionNotFound`; `invalidParams`, with `path` `answers.<fieldId>`, when an answer does not fit; the
    question then stays open."""

    session_id: Id
    question_id: str
    outcome: Literal["answered", "declined"]
    answers: dict[str, JsonValue] = {}
    """By `fieldId`, with `answered`."""
    note: str = Field(default="", max_length=10_000)
    """What the user adds, or says instead of answering."""


class QuestionAnswerResult(Message):
    """`alreadyAnswered`: it was over before."""

    status: Literal["answered", "alreadyAnswered"]
    outcome: Literal["answered", "declined", "cancelled"]
    client: str | None = None
    """Who answered."""
    summary: str
    """A sentence for the user."""


class HunkDecision(Message):
    hunk_id: str
    decision: str
    """`accept` or `reject` what is open; `keep` or `undo` what is applied; `redo` what was taken back or rejected. Any
    other word is a refusal."""
    new_text: str | None = None
    """The user's own text for the hunk, with `accept`."""
    reason: str | None = None


class RowDecision(Message):
    row_id: str
    decision: str
    """The same as for a hunk."""
    reason: str | None = None


class ProposalResult(Message):
    proposal: Proposal


class ProposalResolveParams(Message):
    """Decisions about one proposal, all of its files in one request: each request that decides makes a new version."""

    session_id: Id
    proposal_id: str
    version: int
    """The version the user saw; `proposalConflict` if it is not the present one."""
    hunks: list[HunkDecision] = []
    rows: list[RowDecision] = []


class ProposalResolveResult(Message):
    """`tooSoon`: within half a second of the question; nothing was decided, so show it and decide again."""

    status: Literal["resolved", "tooSoon"]
    proposal: Proposal


class EditScope(Message):
    """Edits of a session: of one proposal, of one turn, of one file, or of all that is named together; nothing named:
    all of them."""

    proposal_id: str | None = None
    """`proposalNotFound` if the session has none of that id."""
    hunk_ids: list[str] | None = None
    """Only with `proposalId`. Rows that `rowIds` does not name are then left out."""
    row_ids: list[str] | None = None
    """Only with `proposalId`. Hunks that `hunkIds` does not name are then left out."""
    turn_id: str | None = None
    path: str | None = None


class SeenProposal(Message):
    proposal_id: str
    version: int


class ProposalDecideParams(Message):
    session_id: Id
    scope: EditScope
    decision: Literal["accept", "reject", "keep", "redo"]
    """`accept` and `reject` what is open, `keep` what a rule applied, `redo` what was taken back. Of each proposal all
    files or none."""
    seen: list[SeenProposal] = Field(min_length=1)
    """What the user saw; of others nothing is decided, and `proposalConflict` if one has another version now."""


class ProposalDecideResult(Message):
    status: Literal["resolved", "tooSoon"]
    proposals: list[Proposal]
    """Those the decision was about, as they are now."""


class ProposalReviseParams(Message):
    """The user's own text for an open hunk, or an edited copy of a file's proposed text, without deciding anything."""

    session_id: Id
    proposal_id: str
    version: int
    hunk_id: str = ""
    new_text: str
    """The text of the hunk; the whole text, if a path is named."""
    path: str | None = None
    """The file in the proposal, instead of a hunk."""
    seen_text: str | None = None
    """The proposed text that the copy was made from, where that is another by now: the user's edits go into the present
    one; `proposalConflict` where they meet what has become of it."""


class ProposalReviseResult(ProposalResult):
    outside: bool = False
    """Some of the copy was edited outside of every open hunk: that is not taken."""


class ProposalRetryParams(Message):
    """Changes that the model is to make again, on the files as they are now. Nothing named: those in conflict."""

    session_id: Id
    proposal_id: str
    version: int
    """The version the user saw; `proposalConflict` if it is not the present one."""
    hunk_ids: list[str] | None = None
    """Open, or in conflict. Rows that `rowIds` does not name are then left out."""
    row_ids: list[str] | None = None
    """The same. Hunks that `hunkIds` does not name are then left out."""


class ProposalRetryResult(Message):
    """`started`: a turn makes them again, `turnId` names it. `queued`: a turn will, after what is before it. `told`:
    the running turn hears of it, `turnId` names it. `tooSoon`: ignored, as the question had only just appeared."""

    status: Literal["started", "queued", "told", "tooSoon"]
    turn_id: str | None = None
    proposal: Proposal


class ProposalSetReviewParams(Message):
    """`after` applies what is open, to be kept or undone; `before` takes back what was applied and not yet kept, to be
    accepted or rejected."""

    session_id: Id
    proposal_id: str
    version: int
    review: Literal["before", "after"]


class ProposalUndoParams(Message):
    session_id: Id
    scope: EditScope
    dry_run: bool = False
    """Only say what would happen."""


class SkippedHunk(Message):
    """A hunk or row that was not taken back, and why."""

    proposal_id: str
    hunk_id: str
    """The `rowId`, if it is a row."""
    reason: str


class UndoneHunk(Message):
    """A hunk or row that was taken back."""

    proposal_id: str
    hunk_id: str
    """The `rowId`, if it is a row."""


class UndoneFile(Message):
    """What undoing does, or did, to one file."""

    path: str
    """Where the file is before that."""
    new_path: str | None = None
    """Of `rename`: where it is after that."""
    action: Literal["edit", "create", "delete", "rename", "none"]
    diff: str
    """Unified; for a row, its title."""
    undone: list[UndoneHunk]
    skipped: list[SkippedHunk]


class ProposalUndoResult(Message):
    files: list[UndoneFile]
    note: str = ""
    """A sentence naming what the agent changed that undoing the turn or session cannot undo (very large files,
    what commands changed in the workspace itself); "" if there is nothing."""


class ProposalDiffParams(Message):
    session_id: Id
    scope: EditScope
    unreviewed: bool = False
    """Only what a rule applied and the user has not kept."""
    texts: bool = False
    """Also the texts of the files."""


class FileChange(Message):
    path: str
    change: Literal["edit", "create", "delete", "rename"]
    new_path: str | None = None
    added: int
    removed: int
    before: str | None = None
    """The text without these edits, if texts were asked for; None if there is no file then."""
    after: str | None = None
    """The text with them."""


class ProposalDiffResult(Message):
    """What is applied of these edits, one file after the other, without what the user typed between them."""

    diff: str
    """Unified."""
    files: list[FileChange]


class ProposalPreviewParams(Message):
    session_id: Id
    scope: EditScope = EditScope()
    texts: bool = False
    """Also the whole texts."""


class PreviewedHunk(Message):
    """A hunk that waits, in its surroundings."""

    hunk: Hunk
    context_before: list[str] = []
    """At most 3 lines of the file above it, without line ends."""
    context_after: list[str] = []


class PreviewedFile(Message):
    """A file with changes that wait."""

    proposal_id: str
    version: int
    path: str
    """The file's present path."""
    change: Literal["edit", "create", "delete", "rename"]
    new_path: str | None = None
    title: str
    """One line for the user: "helpers.py", "helpers.py → tools.py", "signals.py (new file)"."""
    added: int
    removed: int
    """Lines, of what waits."""
    diff: str
    """Unified: from the file as it is to the file with all that is open accepted; "" where nothing is open."""
    text: str | None = None
    """The proposed text (`Hunk.proposedLines` says where the hunks are in it), if texts were asked for."""
    base: str | None = None
    """The text without any of its hunks, if texts were asked for; None: there is no file then."""
    hunks: list[PreviewedHunk]


class ProposalPreviewResult(Message):
    """The edits that wait, as they stand now: by proposal, then by file. Rows are in their proposals."""

    files: list[PreviewedFile]


class ProposalBaselineParams(Message):
    """The text against which an editor marks the changed lines of a file."""

    path: str
    """Absolute; where the file is now."""
    session_id: Id | None = None
    """None: the edits of all sessions that are open."""
    unreviewed: bool = False
    """Only what a rule applied and the user has not kept."""


class ProposalBaselineResult(Message):
    """The text now: the user's own typing is in it. An edit that cannot be told from what came later is, too."""

    path: str
    """The file's path without them: a rename is one of them."""
    text: str | None
    """None: there is no file then."""


class ProposalPatchParams(Message):
    """Changes of a session: all of them, or those of a turn or of some paths."""

    session_id: Id
    state: Literal["open", "applied"] = "open"
    """`open`: a draft, or whatever else waits for a decision."""
    turn_id: str | None = None
    paths: list[str] = []
    """Absolute; a folder stands for all that is in it. Empty: every path."""


class LeftOut(Message):
    """A change that is not in a patch."""

    path: str
    reason: str
    """A sentence."""


class PatchBase(Message):
    folder: str
    """Absolute; the paths in a patch are relative to it: the repository's top; without one, the workspace folder, or
    the folder that holds all of them."""
    commit: str
    """The commit that is checked out in that repository; "" for none, or if its `.git` is a file. A patch of open
    changes is against the files as they are in the workspace, one of applied changes against these files without the
    changes; both may differ from the commit."""


class ProposalPatchResult(Message):
    """A patch that `git apply` takes, binary files, links and executable bits included."""

    patch: str
    base: PatchBase
    files: list[FileChange]
    """Its files, by path."""
    left: list[LeftOut]


# checkpoint -----------------------------------------------------------------------------------------


class CheckpointFile(Message):
    path: str
    added: int
    removed: int
    """Lines, of what is applied."""
    applied: int
    undone: int
    open: int
    """Hunks."""


class Checkpoint(Message):
    """The moment before a turn. Without files and commands, only the conversation goes back."""

    turn_id: str
    prompt_id: str
    text: str
    """The prompt's first line."""
    at: int
    """Milliseconds since the epoch."""
    files: list[CheckpointFile]
    commands: list[str]
    """What the turn ran; what those changed is not covered."""


class CheckpointListParams(Message):
    session_id: Id


class CheckpointListResult(Message):
    checkpoints: list[Checkpoint]
    """Oldest first."""


class CheckpointPreviewParams(Message):
    session_id: Id
    turn_id: str


class CheckpointPreviewResult(Message):
    """What going back to before that turn would do."""

    files: list[UndoneFile]
    commands: list[str]
    """Titles of the commands since then that may have changed something that cannot be undone: that stays."""
    turns: int
    """How many turns would leave the conversation."""


class CheckpointRestoreParams(Message):
    """Undo what that turn and all later ones did to files, take these turns out of the conversation, or both. With the
    conversation, the plan goes back to what it was then, and the mode to the one before the plan was approved. Not
    while a turn runs (`turnInProgress`)."""

    session_id: Id
    turn_id: str
    files: bool = True
    conversation: bool = False


class CheckpointRestoreResult(Message):
    files: list[UndoneFile]
    text: str | None = None
    """With `conversation`: the prompt of that turn, to be edited and sent again."""
    attachments: list[Attachment] = []


# history, blob --------------------------------------------------------------------------------------


class HistoryPageParams(Message):
    session_id: Id
    before_item_id: str
    limit: int = Field(default=100, ge=1, le=1000)


class HistoryPageResult(Message):
    """Items in order, the last one just before `beforeItemId`."""

    items: list[Item]
    has_earlier: bool


class BlobGetParams(Message):
    session_id: Id
    blob_id: str
    offset: int = Field(default=0, ge=0)
    limit: int = Field(default=262_144, ge=1, le=4_194_304)
    """Bytes."""
    encoding: Literal["text", "base64"] = "text"
    """`base64` for what is no text: a picture."""


class BlobGetResult(Message):
    text: str
    next_offset: int | None = None


# command ----------------------------------------------------------------------------------------------


class CommandListParams(Message):
    session_id: Id | None = None
    """None: those of no particular workspace."""


class Command(Message):
    """A prompt that begins with `/name` means something of its own to the daemon."""

    name: str
    description: str
    argument_hint: str = ""
    source: Literal["daemon", "user", "workspace", "skill", "plugin", "server"]
    """Built in; from the user's own folder; from a trusted workspace; a skill; from a plug-in; a prompt of an MCP
    server."""


class CommandListResult(Message):
    commands: list[Command]


# memory -----------------------------------------------------------------------------------------------


class RememberedFact(Message):
    """What the agent was asked to remember: an item of the section "Remembered" of a memory file."""

    number: int
    """Counts from 1, over both scopes."""
    scope: Literal["user", "project"]
    path: str
    """Absolute path of the file it is in."""
    text: str


class MemoryListResult(Message):
    facts: list[RememberedFact]
    files: list[str]
    """The memory files that models are given."""
    summary: str
    """The whole list for the user, on several lines."""


class MemoryStrikeParams(Message):
    session_id: Id
    number: int = Field(ge=1)
    text: str
    """As it was listed: if the number now belongs to another fact, nothing is struck."""


class MemoryStrikeResult(Message):
    summary: str
    """What was done, for the user."""


# MCP servers ------------------------------------------------------------------------------------------


class McpTool(Message):
    """A tool of an MCP server. All of its text but `fullName` is the server's, with hidden characters made visible."""

    name: str
    full_name: str
    """What models call it, and rules name: `mcp__server__tool`."""
    title: str
    description: str
    read_only: bool
    """What the server claims, like the two below."""
    destructive: bool
    open_world: bool


class McpChangedTool(Message):
    """A tool that is off until the user approves its text, which is new or has changed."""

    name: str
    diff: str
    """Unified; of a new tool its whole text."""


class McpServer(Message):
    """An MCP server that is configured for a session's folders, or that a client offered to the session."""

    name: str
    state: Literal["unapproved", "off", "configured", "starting", "ready", "failed", "needsSignIn"]
    """`unapproved`: it does not start before it is approved · `configured`: it starts when it is first needed."""
    reason: str
    source: str
    """Where it is configured; of one that was offered, the client's name."""
    target: str
    """What starts, or is connected to: the exact command line, or the address."""
    access: str
    """A sentence: what its process may do."""
    digest: str
    """Of all that approving it is about."""
    tokens: int
    """What its tools take in every request; an estimate."""
    tools: list[McpTool]
    changed_tools: list[McpChangedTool] = []
    tools_digest: str = ""
    """What approving `changedTools` is about."""
    lines: list[Line]
    """All of that for the user; the first line stands for the whole."""


class McpListResult(Message):
    servers: list[McpServer]
    deferred: bool
    """Their tools would take too much of the model's window, so it finds them by a search; they take no tokens then."""
    summary: str
    """The list for the user, on several lines."""


class McpServerParams(Message):
    session_id: Id
    name: str


class McpApproveParams(McpServerParams):
    digest: str
    """As it was listed: if it is another by now, −32803 `mcpServerChanged`."""


class McpApproveToolsParams(McpServerParams):
    tools_digest: str


class McpServerResult(Message):
    server: McpServer
    summary: str
    """What was done, for the user."""


class McpSignInResult(Message):
    url: str | None
    """The page to open, of the server's authorization server; None when signing in has ended already. How it ends is a
    notice."""
    summary: str


OfferedKey = Annotated[str, Field(min_length=1, max_length=256)]
"""The name of a variable or header."""
OfferedText = Annotated[str, Field(max_length=32_768)]
"""An argument, or the value of a variable or header."""


class OfferedServer(Message):
    """An MCP server that the user configured in their editor. Its values are used literally: `${VAR}` is not
    expanded."""

    name: str = Field(min_length=1, max_length=200)
    """Characters other than ASCII letters, digits, `_` and `-` become `_`."""
    kind: Literal["stdio", "http"]
    command: str = Field(default="", max_length=4_096)
    """Of `stdio`: the program, an absolute path or a name on `PATH`."""
    args: list[OfferedText] = Field(default=[], max_length=1_000)
    env: dict[OfferedKey, OfferedText] = Field(default={}, max_length=1_000, repr=False)
    """Variables it gets besides `PATH`, `HOME`, the language and the like."""
    url: str = Field(default="", max_length=8_192)
    """Of `http` (streamable HTTP)."""
    headers: dict[OfferedKey, OfferedText] = Field(default={}, max_length=100, repr=False)
    """Sent with each request."""


class McpOfferParams(Message):
    session_id: Id
    servers: list[OfferedServer] = Field(max_length=100)
    """All of them, instead of those offered before; an empty list takes them back. The session and its sub-agents use
    them, nobody else, until the session is closed: the daemon also closes it when it is idle with no client attached,
    so offer them again after attaching. They need no approval, and their variables and headers are never written to
    disk. They start at once; a turn has the tools of those that are ready when it begins."""


class MentionCompleteParams(Message):
    session_id: Id | None = None
    roots: list[str] = []
    """Absolute paths of the folders, where there is no session yet."""
    text: str
    """The text before the cursor."""
    terminal: bool = False
    """The client can send what its terminal shows, as a selection with the path `@terminal`."""


MentionKind = Literal["file", "folder", "symbol", "problems", "diff", "terminal", "resource"]


class MentionItem(Message):
    text: str
    """As it goes into the prompt, with the `@`."""
    detail: str = ""
    """For the user."""
    kind: MentionKind = "file"


class MentionCompleteResult(Message):
    typed: str
    """The end of the text, which the chosen item replaces; "" where nothing is mentioned."""
    items: list[MentionItem]
    """Best first."""
    incomplete: bool = False
    """The files are still being read, and only the nearest ones are among the items: ask again in half a second."""


# model, auth, trust, rule -----------------------------------------------------------------------------


class ModelListResult(Message):
    models: list[ModelInfo]
    default_model_id: str | None = None
    """What a new session gets that names none."""
    vendors: dict[str, str] = {}
    """The part of a model's id before the colon → the vendor's name for the user; of a model that an editor offers, the
    part before the slash."""


class OfferedModel(Message):
    """A model that an editor has from its other extensions."""

    vendor: str = Field(min_length=1, max_length=100, pattern=r"^[^/\s]+$")
    """Of the editor's: `copilot`."""
    vendor_title: str = Field(max_length=200)
    id: str = Field(min_length=1, max_length=200, pattern=r"^\S+$")
    """The vendor's own."""
    name: str = Field(max_length=200)
    max_input_tokens: int = Field(ge=0, le=1_000_000_000)


class ModelOfferParams(Message):
    models: list[OfferedModel] = Field(max_length=500)
    """All of them, instead of those offered before."""


class RunTextPart(Message):
    kind: Literal["text"] = "text"
    text: str


class RunImagePart(Message):
    kind: Literal["image"] = "image"
    media_type: str
    data: str
    """Base64."""


class RunCallPart(Message):
    """A tool call."""

    kind: Literal["call"] = "call"
    call_id: str
    tool: str
    arguments: dict[str, JsonValue]


class RunResultPart(Message):
    """The result of the call of that id, which the message before asked for."""

    kind: Literal["result"] = "result"
    call_id: str
    text: str


class RunMessage(Message):
    """What either side says. There are no system messages: the first one of the user's has the system prompt."""

    role: Literal["user", "assistant"]
    parts: list[Annotated[RunTextPart | RunImagePart | RunCallPart | RunResultPart, Field(discriminator="kind")]]


class RunTool(Message):
    name: str
    description: str
    parameters: dict[str, JsonValue]
    """JSON Schema."""


class ModelRunParams(Message):
    run_id: Id
    vendor: str
    id: str
    """As they were offered."""
    messages: list[RunMessage]
    tools: list[RunTool]


class ModelRunResult(Message):
    """How the reply ended; its parts came before."""

    error: Literal["notAllowed", "blocked", "notFound", "other"] | None = None
    """None: it is complete. `notAllowed`: the user has not let Amanu use the model · `blocked`: a quota is used up."""
    message: str = ""
    """The editor's own words about the error."""


class ModelPartParams(Message):
    run_id: str
    part: Annotated[RunTextPart | RunCallPart, Field(discriminator="kind")]


class AuthStatus(Message):
    vendor: str
    title: str = ""
    """The vendor's name for the user; "" where it has none but `vendor`."""
    about: str = ""
    """What its key opens, in a few words."""
    page: str | None = None
    """Where the user gets a key."""
    source: Literal["environment", "signIn", "endedSignIn", "file", "none"]
    """Where the key comes from; the key itself never leaves the daemon. `signIn`: the user signed in to the vendor;
    `endedSignIn`: they did, and must again."""
    variable: str | None = None
    account: str | None = None
    """Who is signed in, also while a key of the environment goes before that."""


class AuthStatusResult(Message):
    vendors: list[AuthStatus]


class AuthSetParams(Message):
    vendor: str
    key: str | None
    """None forgets it."""


class AuthCheckParams(Message):
    vendor: str
    key: str | None = None
    """A key to try before it is kept; None: the one that requests would use."""


class AuthCheckResult(Message):
    status: Literal["accepted", "refused", "unreachable", "untested"]
    """`refused`: the service does not take this key. `untested`: the service has nothing that could be asked for."""
    summary: str
    """A sentence for the user."""


SettingKind = Literal["text", "number", "switch", "choice", "list", "other"]


class Setting(Message):
    """One key of the user's `config.toml`."""

    key: str
    """As in `limits.steps`."""
    section: str
    """The part before the last dot; "" for a key of the first level."""
    kind: SettingKind
    """`list`: of texts. `other`: tables, which are edited in the file."""
    choices: list[str] = []
    """Of kind `choice`: the values there are."""
    values: str
    """What may be set, in words."""
    about: str
    value: JsonValue = None
    """In force for new sessions; None: nothing is set, and there is no default."""
    default: JsonValue = None
    origin: Literal["default", "file", "environment"] = "default"
    """What of the three gives the value; one from the environment goes before the file."""
    variable: str | None = None
    """Of an `environment` origin: the variable."""
    line: int | None = None
    """Its line in the file."""
    restart: bool = False
    """A change takes effect only when the daemon has been started again; else in new sessions."""


class SettingsListResult(Message):
    path: str
    """The user's `config.toml`, which need not exist."""
    settings: list[Setting]


class SettingsSetParams(Message):
    key: str
    value: JsonValue = None
    """None takes the key out of the file: the default holds."""


class SettingsSetResult(Message):
    settings: SettingsListResult
    """As they are now."""
    summary: str
    """What was done and from when on it holds, for the user."""


RuleDecision = Literal["allow", "deny", "mustAsk"]
RuleOrigin = Literal["config", "user", "workspace", "folder"]
"""The user's `config.toml`; remembered for all workspaces, or for some (`rules.toml`); a trusted folder's own file."""


class StoredRule(Message):
    """A rule that holds beyond a session."""

    decision: RuleDecision
    rule: str
    origin: RuleOrigin
    root: str | None = None
    """The folder it is for, of `workspace` and `folder`."""
    where: str
    """Where it is from, for the user."""
    explanation: str
    """What it means, in words."""
    removable: bool
    """False for a `[[rule]]`, and for what is in a folder's own file: those are edited there."""


class RuleListParams(Message):
    roots: list[str] = []
    """Folders whose rules are listed, too."""


class RuleListResult(Message):
    rules: list[StoredRule]


class RuleAddParams(Message):
    """Goes into the user's `config.toml`."""

    decision: RuleDecision
    rule: str


class RuleRemoveParams(Message):
    decision: RuleDecision
    rule: str
    origin: Literal["config", "user", "workspace"]
    root: str | None = None


class RuleChangeResult(Message):
    summary: str


class TrustGetParams(Message):
    root: str


class TrustedItem(Message):
    """Something in a folder that trust lets Amanu read as instructions, or interpret."""

    path: str
    """Relative to the root."""
    kind: Literal["memory", "rules", "command", "skill", "agent"]
    """Project memory · the workspace's own rules · a slash command · a skill · an agent."""
    state: Literal["same", "new", "changed", "gone"]
    """Against what the user trusted; `new` where nothing was trusted yet."""
    diff: str = ""
    """Unified, of `new` (cut at 200 lines), `changed` and `gone`."""
    summary: str = ""
    """For the user: what it is, and how it stands against what they trusted."""


TrustState = Literal["untrusted", "trusted", "changed"]
"""`changed`: the user trusted the folder, but what it enables is not what it was: not trusted until they look."""


class TrustGetResult(Message):
    """Whether a folder is trusted, and what that enables."""

    state: TrustState
    enables: list[TrustedItem]
    digest: str
    """Of all that; an approval names it."""
    lines: list[Line] = []
    """All of this for the user, but for the diffs."""


class TrustSetParams(Message):
    root: str
    trusted: bool
    digest: str | None = None
    """Of what the user was shown (`amanu/trust/get`); None: whatever is there now."""


class RulePreviewParams(Message):
    rule: str
    """One or several, one a line."""
    decision: RuleDecision = "allow"
    session_id: Id | None = None
    """Of the session whose earlier questions it is tried on."""
    tool_call_id: str | None = None
    """Of the question it is meant to answer."""


class RulePreviewResult(Message):
    """How the daemon understands the text of a rule, or why it does not."""

    valid: bool
    explanation: str
    covers: bool | None = None
    """It answers the question named; None: none was."""
    covered: list[str] = []
    """Titles of earlier questions in these folders it would have answered, latest first, 20 at most."""
    covered_count: int = 0
    fits: bool = False
    """It can be saved as the answer to the question named."""
    lines: list[Line] = []
    """All of this for the user; the first one in tone `bad` says why it cannot be saved."""


# audit ------------------------------------------------------------------------------------------------


AuditKind = Literal[
    "asked",
    "decided",
    "started",
    "ended",
    "changing",
    "changed",
    "trust",
    "rule",
    "mode",
    "sandbox",
    "server",
    "hook",
    "log",
]
"""`changing` is on record before a file changes, `changed` says what came of it. `log` is about the log itself: a file
of it begins."""


class AuditQueryParams(Message):
    session_id: Id
    tool_call_id: str | None = None
    """Only what is about that call."""
    before: int | None = None
    """Only entries before that one."""
    limit: int = Field(default=100, ge=1, le=1000)
    detailed: bool = False
    """`lines` say all that is known of each entry, not only what happened."""


class AuditEntry(Message):
    """One entry of the audit log. Each holds the hash of the one before."""

    number: int
    at: int
    """Milliseconds since the epoch."""
    kind: AuditKind
    session_id: str | None = None
    tool_call_id: str | None = None
    text: str
    """A sentence for the user."""
    data: dict[str, JsonValue] = {}
    hash: str


class AuditQueryResult(Message):
    entries: list[AuditEntry]
    """Latest last."""
    intact: bool
    """The chain holds from the first entry to the last."""
    message: str
    """A sentence: how many entries, or where the chain is broken."""
    lines: list[Line] = []
    """All of this for the user, in the daemon's time zone."""


# event, editor ----------------------------------------------------------------------------------------


class EventAckParams(Message):
    session_id: str
    seq: int


class SessionListChangedParams(Message):
    """Some session was created, renamed, closed or deleted, or its status changed."""

    session_id: str


class ActiveEditor(Message):
    """The file and lines before the user. `path` None: no file."""

    path: str | None = None
    lines: LineRange | None = None
    """The selected lines, else the line with the cursor."""
    selected_text: str | None = None
    """None when nothing is selected."""


class FileFindings(Message):
    path: str
    findings: list[Finding]


class ContextChangedParams(Message):
    """What changed of what the user looks at: a field that is absent is as it was."""

    active: ActiveEditor | None = None
    open_files: list[str] | None = None
    """Absolute paths of the files in tabs, all of them."""
    findings: list[FileFindings] | None = None
    """Files whose findings changed, each with all it has now."""


EditorStatus = Literal["success", "starting", "noServer", "error"]
"""`starting`: a language server is there but does not answer yet, ask again; `noServer`: none for this file."""


class EditorDiagnosticsParams(Message):
    paths: list[str] = []
    """Absolute; empty asks about every file the editor knows of."""


class EditorDiagnosticsResult(Message):
    """Asked files that have no findings may be left out."""

    status: EditorStatus
    files: list[FileFindings] = []
    message: str | None = None


class EditorPositionParams(Message):
    """A place in a file."""

    path: str
    position: Position


class Location(Message):
    """Lines of a file."""

    path: str
    lines: LineRange


class EditorLocationsResult(Message):
    status: EditorStatus
    locations: list[Location] = []
    message: str | None = None


class EditorSymbolsParams(Message):
    """The symbols of one file, or those of the workspace that fit a query; one of the two is given."""

    path: str | None = None
    query: str | None = None


class Symbol(Message):
    """`kind` is LSP's word for it, lower case: "class", "method". `container` encloses it, "" at the top."""

    name: str
    kind: str
    path: str
    lines: LineRange
    container: str = ""


class EditorSymbolsResult(Message):
    status: EditorStatus
    symbols: list[Symbol] = []
    message: str | None = None


class EditorHoverResult(Message):
    """`text` is Markdown: what the language server shows on hover; "" for nothing."""

    status: EditorStatus
    text: str = ""
    message: str | None = None


class EditorCallHierarchyParams(EditorPositionParams):
    """What calls the function at a position (incoming), or what it calls (outgoing); one level."""

    direction: Literal["incoming", "outgoing"]


class Call(Message):
    """The other function, and the lines of the calls: in its file (incoming) or in the file asked about (outgoing)."""

    symbol: Symbol
    lines: list[int] = []


class EditorCallHierarchyResult(Message):
    status: EditorStatus
    calls: list[Call] = []
    message: str | None = None


class EditorRenameParams(EditorPositionParams):
    """Nothing is applied: the answer lists the edits."""

    new_name: str


class TextEdit(Message):
    """LSP's: replace what is in the range by `newText`."""

    range: Range
    new_text: str


class RenamedFile(Message):
    """What a rename changes in one file."""

    path: str
    new_path: str | None = None
    """The file also moves there."""
    sha256: str | None = None
    """Of the open document's text when the answer was made, UTF-8, line ends as in the document. None: it is not
    open."""
    edits: list[TextEdit] = []


class EditorRenameResult(Message):
    """No files: the language server renames nothing there. `error` when it would also create or delete files."""

    status: EditorStatus
    files: list[RenamedFile] = []
    message: str | None = None


class EditorReadParams(Message):
    """Answer within 5 seconds. If a client does not answer, the file may have unsaved text there, so it is not edited
    for a minute; after that, only text known to be unsaved is protected from being overwritten."""

    path: str
    """Absolute; in one of the client's workspace folders, or a root of a session it is attached to."""


class EditorReadResult(Message):
    text: str | None = None
    """All of it, line ends as in the file, no byte order mark. None: the client has no such file, or cannot tell."""


class EditorApplyParams(Message):
    """Apply in one tick, as one undo step of its own, only if the buffer's text has this hash."""

    path: str
    expected_sha256: str
    """Of the buffer's text, UTF-8, line ends as in the buffer."""
    edits: list[TextEdit]
    """The edits in order, not overlapping, positions in the text as it was. A place outside the text: `error`, and
    nothing is applied."""
    save: bool


class EditorApplyResult(Message):
    status: Literal["success", "conflict", "notOpen", "error"]
    sha256: str | None = None
    """Of the text after the edits. A client that answers `amanu/editor/read` must give it."""
    version: int | None = None
    saved: bool = False
    message: str | None = None
