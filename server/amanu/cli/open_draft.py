"""What the user has not decided yet of a session's draft, and how to decide it."""

from collections.abc import Collection

from amanu.cli.diff import relative
from amanu.cli.text import one_line
from amanu.text.amounts import plural
from amanu_protocol.items import HunkState, Proposal
from amanu_protocol.state import SessionState

_OPEN: Collection[HunkState] = ("pending", "conflicted")
_MOST_NAMED = 20


def open_drafts(state: SessionState) -> list[Proposal]:
    return [proposal for proposal in state.proposals if proposal.draft and proposal.state == "pending"]


def open_files(state: SessionState) -> list[str]:
    """Absolute paths of the files with drafted changes that have not been decided, in order."""
    files = (file for proposal in open_drafts(state) for file in proposal.files)
    return list(dict.fromkeys(file.path for file in files if any(hunk.state in _OPEN for hunk in file.hunks)))


def describe_open_draft(state: SessionState, *, in_chat: bool) -> str:
    """That drafted changes have not been applied, and what to do about them; "" if there are none. `in_chat`: the user
    can type the commands right there."""
    files = open_files(state)
    if not files:
        return ""
    place = "" if in_chat else f"In amanu chat --session {one_line(state.session_id[:8])}, "
    said = f"The draft has not been applied ({plural(len(files), 'file')}). "
    besides = also_applied(state) if in_chat else _besides(state, "Not kept after this run")
    return f"{said}{place}/accept session applies it and /reject session discards it. {besides}".rstrip()


def also_applied(state: SessionState) -> str:
    """What no hunk shows of the draft; "" for nothing."""
    return _besides(state, "Also applied if you accept the whole draft")


def _besides(state: SessionState, lead: str) -> str:
    paths = dict.fromkeys(path for proposal in open_drafts(state) for path in proposal.besides)
    names = [relative(path, state.roots) for path in paths]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{lead}: {', '.join(names[:_MOST_NAMED])}{more}." if names else ""
