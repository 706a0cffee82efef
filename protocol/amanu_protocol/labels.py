"""What a closed set of protocol words is called on a screen: one table each, for every frontend.

Written from here into TypeScript and Lua (`protocol/generate.py`). Sentences are not here: the daemon words those and
sends them (`server/amanu/text/wording.py`).
"""

from typing import Literal, NamedTuple

from amanu_protocol.items import ContextPart, ContextTier, Grant, Mode, SandboxTier, Scope
from amanu_protocol.requests import TrustState


class Label(NamedTuple):
    """A name, and what it means in a few words ("" where nothing need be said)."""

    name: str
    meaning: str


SCOPES: dict[Scope, str] = {
    "once": "once",
    "turn": "for this turn",
    "session": "for this session",
    "workspace": "always in this workspace",
    "user": "always in every workspace",
}
"""For how long an answer counts: goes after "allow"."""

GRANTS: dict[Grant, Label] = {
    "network": Label("with network access", "it can reach the internet"),
    "unsandboxed": Label("without the sandbox", "it can do everything that you can"),
}
"""What is added to an approval: goes after "allow"."""

Button = Literal[
    "acceptAll",
    "reviewHunks",
    "keepPlanning",
    "editCommand",
    "reject",
    "rejectWithReason",
    "showAll",
    "later",
    "trust",
    "notNow",
    "yes",
    "no",
    "other",
    "send",
    "decline",
]

BUTTONS: dict[Button, str] = {
    "acceptAll": "Accept all",
    "reviewHunks": "Review hunk by hunk",
    "keepPlanning": "Keep planning",
    "editCommand": "Edit the command",
    "reject": "Reject",
    "rejectWithReason": "Reject with a reason",
    "showAll": "Show all of it",
    "later": "Decide later",
    "trust": "Trust this folder",
    "notNow": "Not now",
    "yes": "Yes",
    "no": "No",
    "other": "Something else …",
    "send": "Send",
    "decline": "Decline to answer",
}
"""Answers to a question. An approval is composed: "Allow", then a scope, then what it grants."""

Opening = Literal["rule"]

OPENINGS: dict[Opening, str] = {"rule": "Needs approval"}
"""How a line of an approval begins that says why it is asked about, by what it says; then a colon."""

Ignored = Literal["tooSoon", "stale", "settled"]

IGNORED: dict[Ignored, str] = {
    "tooSoon": "Ignored: answered within 0.5 s of the question appearing. Answer again.",
    "stale": "The question has changed since. Review it again.",
    "settled": "This question is already settled.",
}
"""Why an answer did not count."""

MODES: dict[Mode, Label] = {
    "plan": Label("Plan", "changes nothing; writes a plan that you edit, approve or reject"),
    "ask": Label("Ask", "asks before it edits a file or applies what a command changed"),
    "acceptEdits": Label("Accept edits", "edits files in the workspace without asking"),
    "draft": Label("Draft", "changes nothing until you accept the draft"),
    "auto": Label("Auto", "asks only when a rule or a command requires it"),
}
"""What happens without a question."""

TRUST: dict[TrustState, str] = {
    "untrusted": "This folder is not trusted: its files are read as plain text only. Its instructions to the model, "
    "its rules and its settings are ignored, and code in it runs only in commands, which the mode and your rules "
    "control.",
    "trusted": "This folder is trusted.",
    "changed": "You trusted this folder, but what it enables has changed since. It is not trusted until you review it.",
}
"""How a folder stands."""

SANDBOX: dict[SandboxTier, str] = {
    "bubblewrap": "Sandboxed",
    "landlock": "Sandboxed",
    "seatbelt": "Sandboxed",
    "none": "Not sandboxed",
}
"""What holds a command, where there is room for two words."""

CONTEXT_PARTS: dict[ContextPart, str] = {
    "system": "System prompt",
    "tools": "Tools",
    "memory": "Project memory",
    "conversation": "Conversation",
    "toolOutput": "Tool output",
    "free": "Free",
    "reserved": "Reserved for reply",
}
"""What fills a model's window, in the order it is sent; together they are the window."""

CONTEXT_TIERS: dict[ContextTier, Label] = {
    "roomy": Label("", ""),
    "warn": Label("filling up", "Room is made by itself when it is needed."),
    "mask": Label("nearly full", "Old tool output is dropped to make room; the model can read it again."),
    "compact": Label("full", "The next step replaces what is old with a summary."),
}
"""How full the window is."""
