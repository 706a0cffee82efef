"""The table of methods: name, direction, parameters, result. All else is derived from it."""

from dataclasses import dataclass
from typing import Literal

from amanu_protocol import requests as r
from amanu_protocol.base import Wire
from amanu_protocol.events import EventMessage

PROTOCOL_VERSION = 4

Direction = Literal["toDaemon", "toClient"]


@dataclass(frozen=True)
class Method:
    """One line of the table. `result` is None for a notification."""

    name: str
    direction: Direction
    params: type[Wire]
    result: type[Wire] | None
    doc: str


METHODS: tuple[Method, ...] = (
    Method("amanu/session/create", "toDaemon", r.SessionCreateParams, r.SessionResult, "Start a session and attach to it. A known `sessionId` returns that session."),
    Method("amanu/session/list", "toDaemon", r.SessionListParams, r.SessionListResult, "Sessions, newest first."),
    Method("amanu/session/search", "toDaemon", r.SessionSearchParams, r.SessionSearchResult, "Sessions in which something was said, done or changed, and where."),
    Method("amanu/session/attach", "toDaemon", r.SessionAttachParams, r.SessionAttachResult, "Receive the session's events from here on."),
    Method("amanu/session/detach", "toDaemon", r.SessionParams, r.Empty, "Stop receiving. Never cancels."),
    Method("amanu/session/rename", "toDaemon", r.SessionRenameParams, r.Empty, "Give it a title."),
    Method("amanu/session/archive", "toDaemon", r.SessionArchiveParams, r.Empty, "Leave it out of lists until somebody opens it again, or put it back. Refused (turnInProgress) while a client is attached or something runs in it."),
    Method("amanu/session/close", "toDaemon", r.SessionCloseParams, r.Empty, "Cancel what runs and put it away; attach opens it again."),
    Method("amanu/session/delete", "toDaemon", r.SessionParams, r.Empty, "Close it and remove its journal for good."),
    Method("amanu/session/setMode", "toDaemon", r.SessionSetModeParams, r.Empty, "Change the mode, which also decides open questions: allowed, denied, or still asked. Refused (invalidParams) in the session of a sub-agent at work, which has its parent's mode."),
    Method("amanu/session/setModel", "toDaemon", r.SessionSetModelParams, r.Empty, "Change the model; takes effect with the next turn."),
    Method("amanu/session/setEffort", "toDaemon", r.SessionSetEffortParams, r.Empty, "Change how much models think; takes effect with the next turn."),
    Method("amanu/session/setServiceTier", "toDaemon", r.SessionSetServiceTierParams, r.Empty, "Change how requests are served, and at what price; takes effect with the next turn. Refused if the model has no such tier."),
    Method("amanu/session/compact", "toDaemon", r.SessionCompactParams, r.SessionCompactResult, "Put a summary in the place of what is old in the conversation. The visible items stay."),
    Method("amanu/session/export", "toDaemon", r.SessionExportParams, r.SessionExportResult, "The whole conversation as a text to keep."),
    Method("amanu/session/fork", "toDaemon", r.SessionForkParams, r.SessionResult, "A new session with the conversation up to the end of a turn, and attach to it. Changes, open or applied, commands and sub-agents stay with the old one. A known `newSessionId` returns that session."),
    Method("amanu/session/record", "toDaemon", r.SessionRecordParams, r.Empty, "Write the exchanges with models to a file, secrets removed, from the next request on."),
    Method("amanu/prompt/begin", "toDaemon", r.PromptBeginParams, None, "The user has begun to type a prompt: if the connection to the model's service was closed, it is opened again, at most once a minute."),
    Method("amanu/prompt/send", "toDaemon", r.PromptSendParams, r.PromptSendResult, "Say something: starts a turn, or queues on a busy session. Answers at once. Refused (turnInProgress) in the session of a sub-agent at work: `amanu/prompt/steer` its turn."),
    Method("amanu/prompt/steer", "toDaemon", r.PromptSteerParams, r.Empty, "Say something into the running turn; reaches the model with its next request. It declines the questions of this session's model, ends the reviews of its edits and sends a waiting plan back, unless the turn began with a prompt of another client that is still attached. What a sub-agent or a server asks stays open. What no request will carry is queued: `! COMMAND`, and whatever is said while the daemon carries one out."),
    Method("amanu/prompt/unqueue", "toDaemon", r.PromptUnqueueParams, r.Empty, "Take a queued prompt back. Unknown ids are fine."),
    Method("amanu/turn/cancel", "toDaemon", r.TurnCancelParams, r.TurnCancelResult, "Stop the turn. After the reply nothing more is written, run or sent."),
    Method("amanu/rewrite/start", "toDaemon", r.RewriteStartParams, r.SessionResult, "Rewrite some lines of a file as the user says, and attach to the session that does it: the result is a proposal. Lists leave that session out unless it waits for the user."),
    Method("amanu/rewrite/refine", "toDaemon", r.RewriteRefineParams, r.PromptSendResult, "Say what the last rewrite lacks. What is open of it is rejected, and another one proposed."),
    Method("amanu/rewrite/continue", "toDaemon", r.SessionParams, r.Empty, "Make it an ordinary session, which lists show, with the default model and mode; so does any prompt."),
    Method("amanu/commit/message", "toDaemon", r.CommitMessageParams, r.CommitMessageResult, "A message for these changes. Nothing is committed."),
    Method("amanu/approval/resolve", "toDaemon", r.ApprovalResolveParams, r.ApprovalResolveResult, "Answer a pending approval. The first answer wins."),
    Method("amanu/question/answer", "toDaemon", r.QuestionAnswerParams, r.QuestionAnswerResult, "Answer a question, or decline to. The first answer counts. When its turn is over, the answer becomes a prompt."),
    Method("amanu/proposal/resolve", "toDaemon", r.ProposalResolveParams, r.ProposalResolveResult, "Accept (with or without own text) or reject hunks. Accepted hunks are applied before the reply."),
    Method("amanu/proposal/decide", "toDaemon", r.ProposalDecideParams, r.ProposalDecideResult, "Decide whatever is open of a proposal, file, turn or session. Applied before the reply."),
    Method("amanu/proposal/revise", "toDaemon", r.ProposalReviseParams, r.ProposalReviseResult, "Change the proposed text of an open hunk, or of all open hunks of a file by an edited copy of its proposed text."),
    Method("amanu/proposal/retry", "toDaemon", r.ProposalRetryParams, r.ProposalRetryResult, "Reject open or conflicted changes and ask the model to make them again on the files as they are now."),
    Method("amanu/proposal/setReview", "toDaemon", r.ProposalSetReviewParams, r.ProposalResult, "Review it before it is applied, or after."),
    Method("amanu/proposal/undo", "toDaemon", r.ProposalUndoParams, r.ProposalUndoResult, "Take applied hunks back, keeping what the user changed since; or say what that would do."),
    Method("amanu/proposal/diff", "toDaemon", r.ProposalDiffParams, r.ProposalDiffResult, "What the agent changed in a turn, a file, the session: one diff."),
    Method("amanu/proposal/preview", "toDaemon", r.ProposalPreviewParams, r.ProposalPreviewResult, "What waits, file by file as of now: diff, hunks with the lines around them, and the whole texts on demand."),
    Method("amanu/proposal/baseline", "toDaemon", r.ProposalBaselineParams, r.ProposalBaselineResult, "The text of a file without what sessions have applied to it; `proposalNotFound` if they have not."),
    Method("amanu/proposal/patch", "toDaemon", r.ProposalPatchParams, r.ProposalPatchResult, "Open or applied changes as a patch that `git apply` takes, binary files included."),
    Method("amanu/checkpoint/list", "toDaemon", r.CheckpointListParams, r.CheckpointListResult, "The turns one can go back before."),
    Method("amanu/checkpoint/preview", "toDaemon", r.CheckpointPreviewParams, r.CheckpointPreviewResult, "What going back would do."),
    Method("amanu/checkpoint/restore", "toDaemon", r.CheckpointRestoreParams, r.CheckpointRestoreResult, "Go back: files, conversation, or both."),
    Method("amanu/job/begin", "toDaemon", r.JobBeginParams, r.JobBeginResult, "Put a running command in the background: its call ends, and it goes on as a job. Refused (commandNotMovable) if none runs, or it runs on a private copy of the workspace, whose changes are decided on when it ends."),
    Method("amanu/job/output", "toDaemon", r.JobOutputParams, r.JobOutputResult, "What a background command has printed."),
    Method("amanu/job/input", "toDaemon", r.JobInputParams, r.Empty, "Type into a background command."),
    Method("amanu/job/stop", "toDaemon", r.JobParams, r.JobResult, "End a background command and all its processes. One that has ended stays as it is."),
    Method("amanu/agent/stop", "toDaemon", r.AgentParams, r.AgentResult, "End a sub-agent's work. One that has ended stays as it is."),
    Method("amanu/history/page", "toDaemon", r.HistoryPageParams, r.HistoryPageResult, "Earlier items."),
    Method("amanu/blob/get", "toDaemon", r.BlobGetParams, r.BlobGetResult, "A piece of a big payload."),
    Method("amanu/command/list", "toDaemon", r.CommandListParams, r.CommandListResult, "What a prompt may begin with: `/name`."),
    Method("amanu/memory/list", "toDaemon", r.SessionParams, r.MemoryListResult, "What is remembered for later sessions, and the memory files in use."),
    Method("amanu/memory/strike", "toDaemon", r.MemoryStrikeParams, r.MemoryStrikeResult, "Take one fact out of its file. It can be undone like any change."),
    Method("amanu/mcp/list", "toDaemon", r.SessionParams, r.McpListResult, "The MCP servers of the session's folders, with their tools."),
    Method("amanu/mcp/approve", "toDaemon", r.McpApproveParams, r.McpServerResult, "Approve what a server starts, as it was listed, and start it."),
    Method("amanu/mcp/approveTools", "toDaemon", r.McpApproveToolsParams, r.McpServerResult, "Approve the tools of a server as they are now."),
    Method("amanu/mcp/turnOff", "toDaemon", r.McpServerParams, r.McpServerResult, "Stop a server, until it is approved again."),
    Method("amanu/mcp/restart", "toDaemon", r.McpServerParams, r.McpServerResult, "Stop a server, and start it again."),
    Method("amanu/mcp/signIn", "toDaemon", r.McpServerParams, r.McpSignInResult, "Sign in to a server that asks for it. Answers as soon as there is a page to open."),
    Method("amanu/mcp/offer", "toDaemon", r.McpOfferParams, r.Empty, "Hand MCP servers over to one session, until it is closed."),
    Method("amanu/mention/complete", "toDaemon", r.MentionCompleteParams, r.MentionCompleteResult, "What the mention at the end of a text may become: `@path`, `@symbol:Name` …"),
    Method("amanu/model/list", "toDaemon", r.Empty, r.ModelListResult, "Models to choose from."),
    Method("amanu/model/offer", "toDaemon", r.ModelOfferParams, r.Empty, "Offer the models that this editor has from its other extensions, until it disconnects."),
    Method("amanu/model/part", "toDaemon", r.ModelPartParams, None, "The next part of the reply to `amanu/model/run`: some text, or a whole tool call."),
    Method("amanu/auth/status", "toDaemon", r.Empty, r.AuthStatusResult, "Which vendors have a key, and where it comes from."),
    Method("amanu/auth/set", "toDaemon", r.AuthSetParams, r.Empty, "Keep or forget a key, in the user's own folder."),
    Method("amanu/auth/check", "toDaemon", r.AuthCheckParams, r.AuthCheckResult, "Ask a vendor whether it takes a key. Costs nothing, and keeps nothing."),
    Method("amanu/settings/list", "toDaemon", r.Empty, r.SettingsListResult, "All settings of the user, with values and documentation."),
    Method("amanu/settings/set", "toDaemon", r.SettingsSetParams, r.SettingsSetResult, "Change the user's `config.toml`, whose comments stay."),
    Method("amanu/trust/get", "toDaemon", r.TrustGetParams, r.TrustGetResult, "What trusting a folder enables, and what of it changed since it was trusted."),
    Method("amanu/trust/set", "toDaemon", r.TrustSetParams, r.Empty, "Declare a workspace folder trusted or not, for this user."),
    Method("amanu/rule/list", "toDaemon", r.RuleListParams, r.RuleListResult, "The rules that hold beyond a session."),
    Method("amanu/rule/add", "toDaemon", r.RuleAddParams, r.RuleChangeResult, "Keep a rule in the user's `config.toml`."),
    Method("amanu/rule/remove", "toDaemon", r.RuleRemoveParams, r.RuleChangeResult, "Forget a rule of the user's."),
    Method("amanu/rule/preview", "toDaemon", r.RulePreviewParams, r.RulePreviewResult, "Check the text of a rule before saving it, and try it on what was asked before."),
    Method("amanu/audit/query", "toDaemon", r.AuditQueryParams, r.AuditQueryResult, "Who or what decided what, and what was done."),
    Method("amanu/event/ack", "toDaemon", r.EventAckParams, None, "The client has drawn everything up to `seq`."),
    Method("amanu/editor/contextChanged", "toDaemon", r.ContextChangedParams, None, "The user looks at something else."),
    Method("amanu/event", "toClient", EventMessage, None, "Something happened in an attached session."),
    Method("amanu/session/listChanged", "toClient", r.SessionListChangedParams, None, "The list of sessions changed."),
    Method("amanu/mcp/changed", "toClient", r.Empty, None, "Something about MCP servers changed: ask for the list again."),
    Method("amanu/model/run", "toClient", r.ModelRunParams, r.ModelRunResult, "Ask a model that this client offered. The parts of its reply go as `amanu/model/part`, all of them before the answer."),
    Method("amanu/editor/read", "toClient", r.EditorReadParams, r.EditorReadResult, "The text of a file as this editor shows it now, unsaved changes and all; for a client that sends no documents."),
    Method("amanu/editor/apply", "toClient", r.EditorApplyParams, r.EditorApplyResult, "Apply edits to an open buffer, if its text is the one expected."),
    Method("amanu/editor/diagnostics", "toClient", r.EditorDiagnosticsParams, r.EditorDiagnosticsResult, "What the editor's language servers and linters find in files."),
    Method("amanu/editor/definition", "toClient", r.EditorPositionParams, r.EditorLocationsResult, "Where the thing at a place is defined."),
    Method("amanu/editor/references", "toClient", r.EditorPositionParams, r.EditorLocationsResult, "Where the thing at a place is used."),
    Method("amanu/editor/symbols", "toClient", r.EditorSymbolsParams, r.EditorSymbolsResult, "Symbols of a file, or of the workspace by a query."),
    Method("amanu/editor/hover", "toClient", r.EditorPositionParams, r.EditorHoverResult, "What the language server says about the symbol at a position."),
    Method("amanu/editor/callHierarchy", "toClient", r.EditorCallHierarchyParams, r.EditorCallHierarchyResult, "Calls to the function at a position, or the calls it makes."),
    Method("amanu/editor/rename", "toClient", r.EditorRenameParams, r.EditorRenameResult, "The edits that rename the symbol at a position everywhere. Nothing is applied."),
)  # fmt: skip

BY_NAME = {method.name: method for method in METHODS}
