"""Small things happening in a session, for tests of what draws them."""

import io
from typing import Any

from amanu.cli.console import PlainConsole, RichConsole
from amanu.cli.render import Renderer
from amanu.permissions.answers import answers_to
from amanu.proposals.places import LiveHunk, placed
from amanu.text import wording
from amanu.workspace.text_file import line_count
from amanu_protocol.base import LineRange
from amanu_protocol.events import Event, EventMessage
from amanu_protocol.items import Approval, Decision, Line, Proposal, ProposedFile, Row, ScopeOffer, ToolCall
from amanu_protocol.state import SessionState, fold
from support.fake_daemon import SESSION, state


def call(state: Any = "succeeded", **changes: Any) -> ToolCall:
    plain: dict[str, Any] = {
        "item_id": "c",
        "turn_id": "t",
        "tool": "read_file",
        "title": "Read app.py",
        "effect": "read",
        "arguments": {},
        "state": state,
        "output": "",
    }
    return ToolCall(**{**plain, **changes})


def hunk(number: int = 1, at: int = 1, **changes: Any) -> LiveHunk:
    """A hunk at that line of its base, from 0."""
    plain: dict[str, Any] = {
        "hunk_id": f"h{number}",
        "old_text": "two\n",
        "new_text": "zwei\n",
        "state": "pending",
        "edited_by_user": False,
    }
    fields = {**plain, **changes}
    return LiveHunk(**fields, base_lines=LineRange(start=at, end=at + line_count(fields["old_text"])))


def row(number: int = 1, *lines: str, **changes: Any) -> Row:
    """A new picture."""
    plain: dict[str, Any] = {
        "row_id": f"r{number}",
        "kind": "file",
        "path": "/w/logo.png",
        "state": "pending",
        "title": "binary file, 4,096 bytes",
        "lines": [Line(tone="plain", text=text) for text in lines],
        "digest": f"d{number}",
        "turn_id": "t",
    }
    return Row(**{**plain, **changes})


def proposed(*hunks: LiveHunk, version: int = 1, **changes: Any) -> Proposal:
    plain: dict[str, Any] = {
        "path": "/w/a.txt",
        "change": "edit",
        "base_sha256": "0",
        "base_text": "one\ntwo\nthree\n",
        "hunks": hunks or (hunk(),),
        "added": 1,
        "removed": 1,
        "encoding": "utf-8",
        "final_newline": True,
        "unsaved": False,
    }
    file = {**plain, **changes}
    file["hunks"] = placed(file["hunks"])
    settled = all(each.state != "pending" for each in hunks) and bool(hunks)
    return Proposal(
        proposal_id="p",
        turn_id="t",
        tool_call_ids=["c"],
        version=version,
        state="settled" if settled else "pending",
        files=[ProposedFile(**file)],
    )


def approval(**changes: Any) -> Approval:
    plain: dict[str, Any] = {
        "tool_call_id": "c",
        "title": "Run make test",
        "detail": "make test",
        "effect": "run",
        "rule": "no rule allows it",
        "scopes": [
            ScopeOffer(scope="once", rule=""),
            ScopeOffer(scope="session", rule="run_shell_command(make test)"),
            ScopeOffer(scope="user", rule="run_shell_command(make test)"),
        ],
        "asked_at": 0,
    }
    return answered(wording.explain_approval(Approval(**{**plain, **changes})))


def answered(explained: Approval) -> Approval:
    """The approval with its answers."""
    return explained.model_copy(update={"answers": answers_to(explained)})


DENIED = Decision(
    outcome="denied",
    by="rule",
    rule="no rule allows it",
    reason="Nobody is there to approve it. Permit it with --allow '@write(it'\\''s.txt)'.",
)


class Story:
    """Folds events and draws them, one second apart."""

    def __init__(self, *, rich: bool = False, colour: bool = True, **options: Any) -> None:
        self.out = io.StringIO()
        console = RichConsole(self.out, colour=colour, width=100) if rich else PlainConsole(self.out)
        self.renderer = Renderer(console, **options)
        self.state: SessionState = state(items=[])
        self.at = 0

    def tell(self, *events: Event) -> "Story":
        for event in events:
            self.at += 1000
            fold(self.state, event)
            message = EventMessage(session_id=SESSION, epoch=1, seq=self.at, at=self.at, event=event)
            self.renderer.show(message, self.state)
        return self

    @property
    def text(self) -> str:
        return self.out.getvalue()
