"""The requests of the protocol about one session (`Session`) or none (`Sessions`). Parts have requests of their own
(`core/session_part.py`), and a connection answers those about itself. A call takes the `Session` or the `Sessions`,
the params and the client."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from amanu.core.session_part import Request
from amanu.session.events import Client
from amanu_protocol import requests as r

if TYPE_CHECKING:
    from amanu.session.session import Session
    from amanu.session.sessions import Sessions

P = TypeVar("P")


def _session(params: type[P], call: "Callable[[Session, P, Client], Any]", reads: bool = False) -> Request:
    return Request(params, call, reads)


def _daemon(params: type[P], call: "Callable[[Sessions, P, Client], Any]", reads: bool = False) -> Request:
    return Request(params, call, reads)


SESSION_REQUESTS: Mapping[str, Request] = {
    "amanu/session/rename": _session(r.SessionRenameParams, lambda s, p, _: s.rename(p.title)),
    "amanu/session/setMode": _session(r.SessionSetModeParams, lambda s, p, _: s.set_mode(p.mode)),
    "amanu/session/setModel": _session(r.SessionSetModelParams, lambda s, p, c: s.set_model(p.model_id, c)),
    "amanu/session/setEffort": _session(r.SessionSetEffortParams, lambda s, p, _: s.set_effort(p.effort)),
    "amanu/session/compact": _session(r.SessionCompactParams, lambda s, p, c: s.prompts.compact(p.focus, c)),
    "amanu/session/record": _session(r.SessionRecordParams, lambda s, p, _: s.record(p.path)),
    "amanu/session/export": _session(r.SessionExportParams, lambda s, p, _: s.export.text(p), reads=True),
    "amanu/prompt/send": _session(r.PromptSendParams, lambda s, p, c: s.send_prompt(p, c)),
    "amanu/prompt/steer": _session(r.PromptSteerParams, lambda s, p, c: s.prompts.steer(p, c)),
    "amanu/prompt/unqueue": _session(r.PromptUnqueueParams, lambda s, p, _: s.prompts.unqueue(p.prompt_id)),
    "amanu/turn/cancel": _session(r.TurnCancelParams, lambda s, p, _: s.prompts.cancel(p.turn_id)),
    "amanu/rewrite/refine": _session(r.RewriteRefineParams, lambda s, p, c: s.refine(p, c)),
    "amanu/rewrite/continue": _session(r.SessionParams, lambda s, _, c: s.continue_rewrite(c)),
    "amanu/approval/resolve": _session(r.ApprovalResolveParams, lambda s, p, c: s.resolve_approval(p, c)),
    "amanu/question/answer": _session(r.QuestionAnswerParams, lambda s, p, c: s.answer_question(p, c)),
    "amanu/proposal/resolve": _session(r.ProposalResolveParams, lambda s, p, _: s.edits.resolve(p)),
    "amanu/proposal/decide": _session(r.ProposalDecideParams, lambda s, p, _: s.edits.decide(p)),
    "amanu/proposal/revise": _session(r.ProposalReviseParams, lambda s, p, _: s.edits.revise(p)),
    "amanu/proposal/retry": _session(r.ProposalRetryParams, lambda s, p, c: s.retry(p, c)),
    "amanu/proposal/setReview": _session(r.ProposalSetReviewParams, lambda s, p, _: s.edits.set_review(p)),
    "amanu/proposal/undo": _session(r.ProposalUndoParams, lambda s, p, _: s.edits.undo(p)),
    "amanu/proposal/diff": _session(r.ProposalDiffParams, lambda s, p, _: s.edits.diff(p), reads=True),
    "amanu/proposal/preview": _session(r.ProposalPreviewParams, lambda s, p, _: s.previews.preview(p), reads=True),
    "amanu/proposal/patch": _session(r.ProposalPatchParams, lambda s, p, _: s.patches.patch(p), reads=True),
    "amanu/checkpoint/list": _session(r.CheckpointListParams, lambda s, _, __: s.checkpoints.list(), reads=True),
    "amanu/checkpoint/preview": _session(r.CheckpointPreviewParams, lambda s, p, _: s.checkpoints.preview(p)),
    "amanu/checkpoint/restore": _session(r.CheckpointRestoreParams, lambda s, p, _: s.checkpoints.restore(p)),
    "amanu/job/begin": _session(r.JobBeginParams, lambda s, p, _: s.core.jobs.begin(p)),
    "amanu/job/output": _session(r.JobOutputParams, lambda s, p, _: s.core.jobs.output(p), reads=True),
    "amanu/job/input": _session(r.JobInputParams, lambda s, p, _: s.core.jobs.input(p)),
    "amanu/job/stop": _session(r.JobParams, lambda s, p, _: s.core.jobs.end(p)),
    "amanu/history/page": _session(r.HistoryPageParams, lambda s, p, _: s.pages.items(p), reads=True),
    "amanu/blob/get": _session(r.BlobGetParams, lambda s, p, _: s.pages.blob(p), reads=True),
}
DAEMON_REQUESTS: Mapping[str, Request] = {
    "amanu/session/list": _daemon(r.SessionListParams, lambda s, p, _: s.summaries.list(p), reads=True),
    "amanu/session/search": _daemon(r.SessionSearchParams, lambda s, p, _: s.search.find(p), reads=True),
    "amanu/session/close": _daemon(
        r.SessionCloseParams, lambda s, p, _: s.put_away(p.session_id) if p.idle_only else s.close(p.session_id)
    ),
    "amanu/session/archive": _daemon(r.SessionArchiveParams, lambda s, p, _: s.archive(p.session_id, p.archived)),
    "amanu/session/delete": _daemon(r.SessionParams, lambda s, p, _: s.delete(p.session_id)),
    "amanu/prompt/begin": _daemon(r.PromptBeginParams, lambda s, p, c: s.begin_prompt(p, c)),
    "amanu/commit/message": _daemon(r.CommitMessageParams, lambda s, p, c: s.write_commit_message(p, c), reads=True),
    "amanu/proposal/baseline": _daemon(r.ProposalBaselineParams, lambda s, p, _: s.baseline(p), reads=True),
    "amanu/command/list": _daemon(r.CommandListParams, lambda s, p, _: s.completion.slash_commands(p), reads=True),
    "amanu/model/list": _daemon(r.Empty, lambda s, _, c: s.models.list(c), reads=True),
    "amanu/auth/status": _daemon(r.Empty, lambda s, _, c: s.keys.status(c)),
    "amanu/auth/set": _daemon(r.AuthSetParams, lambda s, p, _: s.keys.set(p)),
    "amanu/auth/check": _daemon(r.AuthCheckParams, lambda s, p, c: s.keys.check(p, c), reads=True),
    "amanu/settings/list": _daemon(r.Empty, lambda s, _, __: s.settings.list(), reads=True),
    "amanu/settings/set": _daemon(r.SettingsSetParams, lambda s, p, _: s.settings.set(p.key, p.value)),
    "amanu/trust/get": _daemon(r.TrustGetParams, lambda s, p, c: s.trust.get(p, c), reads=True),
    "amanu/trust/set": _daemon(r.TrustSetParams, lambda s, p, _: s.trust.set(p)),
    "amanu/rule/list": _daemon(r.RuleListParams, lambda s, p, c: s.rules.list(p, c), reads=True),
    "amanu/rule/add": _daemon(r.RuleAddParams, lambda s, p, _: s.rules.add(p)),
    "amanu/rule/remove": _daemon(r.RuleRemoveParams, lambda s, p, _: s.rules.remove(p)),
    "amanu/rule/preview": _daemon(r.RulePreviewParams, lambda s, p, _: s.rules.preview(p)),
    "amanu/audit/query": _daemon(r.AuditQueryParams, lambda s, p, _: s.audit_query(p), reads=True),
}
