"""Entries about hooks in the audit log."""

import hashlib

from amanu.hooks.model import HookDecision, HookRun, HookView
from amanu.session.audit_recorder import AuditRecorder

_ANSWERS = {"none": "no objection.", "allow": "allowed.", "ask": "the user is to be asked.", "deny": "refused."}


def record_run(audit: AuditRecorder, run: HookRun, decision: HookDecision, call_id: str | None) -> None:
    """Record that a hook has run. `call_id`: the call it was run for, if any."""
    hook = run.hook
    audit.record(
        "hook",
        f"Hook {hook.label} ({hook.event}): {run.failure or _ANSWERS[decision.action]}",
        call_id,
        event=hook.event,
        source=str(hook.source.path),
        command=hook.command,
        args=None if hook.arguments is None else list(hook.arguments),
        answer=decision.action,
        reason=decision.reason or None,
        input=None if decision.updated_input is None else dict(decision.updated_input),
        exit=run.exit_code,
        failure=run.failure or None,
        ms=round(run.seconds * 1000),
        stdout=_measure(run.stdout),
        stderr=_measure(run.stderr),
    )


def record_approval(audit: AuditRecorder, view: HookView) -> None:
    """Record that the user has approved a hook."""
    text = f"Approved the hook {view.hook.label} ({view.hook.event})."
    source = str(view.hook.source.path)
    audit.record("trust", text, event=view.hook.event, source=source, files=dict(view.files), digest=view.digest)


def _measure(output: str) -> dict[str, object]:
    """The size and hash of an output: entries never contain what a program printed."""
    data = output.encode("utf-8", "surrogatepass")
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
