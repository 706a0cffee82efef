"""A summary in the place of what is old: where to cut, what the summarising model is shown, what comes of it."""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from amanu.agent.system_prompt import load_prompt
from amanu.agent.window.pruning import describe_call
from amanu.agent.window.token_gauge import ASCII, estimate
from amanu.core.conversation import (
    Assistant,
    Compacted,
    Conversation,
    Message,
    Picture,
    Results,
    SystemText,
    Text,
    User,
)

Ask = Callable[[str, str], Awaitable[str]]
"""System prompt and question → the answer of a model. Raises `ModelError`."""

RESULT = 2_000
"""Characters of a result the summarising model is shown; the results themselves are no memory."""
CALL = 400
USER_SHARE = 0.15
"""Share of the window for the user's own words."""
LONGEST_WORDS = 6_000
"""Characters shown of one thing the user said, more where there is room …"""
SHORTEST_WORDS = 200
"""… and to which that is shortened when they said much; all of it can be read again."""
GAIN = 0.8
"""A summary that takes more than this share of what it replaces is none."""
READ_FILES = 40
"""Files that were only read are named up to so many, the latest ones."""
LAST_ACTIONS = 30
"""Lines of the record when no model made a summary of it."""

_AROUND = re.compile(r"<(editor_context|session_status|files_changed|project_memory)>\n.*?\n</\1>", re.DOTALL)
"""What went with the user's words unasked; it is told anew after a compaction."""
_EXPLAINED = (
    "The conversation before this point was replaced by this summary to make room. It is a record of what was said and "
    "done."
)
_BEGINNING, _END = "<conversation_summary>", "</conversation_summary>"
_GOAL = re.compile(r"^(?:#+|\*\*)\s*goal", re.IGNORECASE | re.MULTILINE)
_ASIDE = re.compile(r"<(think|thinking|scratchpad)>.*?</\1>", re.DOTALL | re.IGNORECASE)


class NoSummary(Exception):
    """What the model wrote is no summary; the text says why."""


@dataclass
class Extract:
    """What is taken out of the conversation."""

    lines: list[str] = field(default_factory=list[str])
    user_texts: list[str] = field(default_factory=list[str])
    """The user's own words."""
    files: dict[str, str] = field(default_factory=dict[str, str])
    """Path → "edited" or "read", the last touched last."""
    actions: list[str] = field(default_factory=list[str])
    """Calls and what came of them, a line each."""
    replies: int = 0


def count_replaceable(conversation: Conversation, weights: Sequence[float], keep: float) -> int:
    """How many messages to replace: all but the last ones that together take at most `keep` tokens. The last exchange
    stays whatever it takes, and a call stays with its results. 0 when there is nothing to gain."""
    if len(conversation) == 0:
        return 0
    first = len(conversation) - 1
    while first > 0 and _belongs_to_reply(conversation[first]):
        first -= 1
    total = sum(weights[first:])
    start = first
    while start > 0 and total + weights[start - 1] <= keep:
        start -= 1
        total += weights[start]
        if not isinstance(conversation[start], Results):
            first = start
    return first if first > 1 or (first == 1 and conversation.compacted is None) else 0


def _belongs_to_reply(message: Message) -> bool:
    """It comes after a reply and means nothing without it: results, or the daemon's word that it goes on."""
    return isinstance(message, Results) or (isinstance(message, User) and message.from_system)


def extract(messages: Sequence[Message], earlier: Compacted | None, writers: Collection[str]) -> Extract:
    """What the messages hold. `earlier` stands for the first of them, if there is one. `writers`: names of the tools
    that change files."""
    taken = Extract()
    if earlier is not None:
        taken.user_texts += earlier.user_texts
        taken.files |= earlier.files
        taken.actions += earlier.actions
        taken.lines += earlier.actions
        taken.replies = earlier.replies
        messages = messages[1:]
    for index, message in enumerate(messages):
        match message:
            case User(from_system=False):
                pictures = [f"[with the picture {picture.name}]" for picture in message.pictures]
                text = "\n".join([_AROUND.sub("", message.text).rstrip(), *pictures])
                taken.user_texts.append(text)
                taken.lines.append(f"[user] {text}")
            case User():
                taken.lines.append(f"[told] {message.text}")
            case Assistant():
                _reply(taken, message)
            case Results():
                request = messages[index - 1] if index else None
                if isinstance(request, Assistant):
                    _results(taken, request, message, writers)
                _notes(taken, message)
    return taken


def _reply(taken: Extract, message: Assistant) -> None:
    taken.replies += 1
    text = "".join(part.text for part in message.parts if isinstance(part, Text)).strip()
    if text:
        taken.lines.append(f"[programmer] {text}")
        taken.actions.append(f"said: {_ends(text, 300)}")


def _results(taken: Extract, request: Assistant, answers: Results, writers: Collection[str]) -> None:
    for call, result in zip(request.calls, answers.results, strict=False):
        line = describe_call(call, CALL)
        taken.lines.append(f"[call] {line}\n[result{', failed' * result.is_error}] {_ends(result.text, RESULT)}")
        outcome = "failed" if result.is_error else "done"
        taken.actions.append(f"{describe_call(call)}: {outcome}; {_ends(' '.join(result.text.split()), 120)}")
        path = call.arguments.get("path") if isinstance(call.arguments, dict) else None
        if isinstance(path, str) and path and not result.is_error:
            earlier = taken.files.pop(path, "")
            taken.files[path] = "edited" if "edited" in earlier or call.tool in writers else "read"


def _notes(taken: Extract, message: Results) -> None:
    for note in message.notes:
        match note:
            case str():
                taken.user_texts.append(note)
                taken.lines.append(f"[user] {note}")
            case SystemText(text=text):
                taken.lines.append(f"[told] {text}")
            case Picture(name=name):
                taken.lines.append(f"[user showed the picture {name}]")


async def summarise(lines: Sequence[str], earlier: str, focus: str, max_words: int, room: float, ask: Ask) -> str:
    """The snapshot of at most about that many words which a model makes of the record, piece by piece when it is shown
    at most `room` tokens at once. Raises `NoSummary`, `ModelError`."""
    snapshot = earlier
    for piece in _pieces(lines, room):
        parts = [f"# Earlier summary\n\n{snapshot}"] if snapshot else []
        parts.append(f"# The record\n\n{piece}")
        if focus:
            parts.append(f"# What the user asks you not to lose\n\n{focus}")
        parts.append(f"Write the summary now, in at most {max_words} words.")
        snapshot = _checked(await ask(load_prompt("snapshot"), "\n\n".join(parts)))
    return snapshot


def _checked(answer: str) -> str:
    text = _ASIDE.sub("", answer).strip()
    if not text:
        raise NoSummary("the model wrote nothing")
    if _GOAL.search(text) is None:
        raise NoSummary("what the model wrote is no summary")
    return text


def _pieces(lines: Sequence[str], room: float) -> list[str]:
    pieces: list[list[str]] = [[]]
    size = 0.0
    for line in lines:
        line = _ends(line, max(200, int(room * 2)))
        took = estimate(line)
        if pieces[-1] and size + took > room:
            pieces.append([])
            size = 0.0
        pieces[-1].append(line)
        size += took
    return ["\n\n".join(piece) for piece in pieces]


def compose(
    replaced: int, snapshot: str, taken: Extract, window: float, *, by_model: bool, in_turn: bool, saved_as: str = ""
) -> Compacted:
    """The message that stands for the first `replaced` ones. `by_model`: the snapshot holds all of them; else it is an
    earlier one, and what was done since stands beside it. `in_turn`: the work on the last thing said goes on. `kept`:
    where `read_output` finds all the user said, when not all of it is shown."""
    actions = () if by_model else tuple(taken.actions[-LAST_ACTIONS:])
    parts = [
        f"{_BEGINNING}\n\n{_EXPLAINED}",
    ]
    if snapshot:
        parts.append(snapshot)
    if actions:
        since = "\n".join(f"- {action}" for action in actions)
        parts.append(f"## What was done last, from the record\n{since}")
    files = _bounded(taken.files)
    if files:
        parts.append(
            "## Files touched, the latest last\n" + "\n".join(f"- {path}: {how}" for path, how in files.items())
        )
    parts.append("## What the user said, in their words")
    parts += fit_user_texts(taken.user_texts, window * USER_SHARE)[0]
    if saved_as:
        parts.append(f'[These words in full: read_output(id="{saved_as}")]')
    parts.append(_END)
    if in_turn:
        parts.append("You are in the middle of the work on the last of these. Go on from where the record ends.")
    return Compacted(
        replaced=replaced,
        text="\n\n".join(parts),
        snapshot=snapshot,
        actions=actions,
        user_texts=tuple(taken.user_texts),
        files=dict(files),
        replies=taken.replies,
    )


def readable(summary: str) -> str:
    """What a composed message tells, without what it says to the model about itself. For people."""
    return summary.partition(_EXPLAINED)[2].rpartition(_END)[0].strip()


def fit_user_texts(texts: Sequence[str], room: float) -> tuple[list[str], bool]:
    """What the user said, numbered, in about `room` tokens, and whether it is all there. Short things as they are,
    long ones head and tail, the shorter the more there are; when that is not enough the first and the last stay."""
    limit = max(LONGEST_WORDS, int(room / ASCII))
    shortened = [_ends(text, limit) for text in texts]
    while limit > SHORTEST_WORDS and sum(map(estimate, shortened)) > room:
        limit = limit * 2 // 3
        shortened = [_ends(text, limit) for text in texts]
    numbered = [f"{number}. {text}" for number, text in enumerate(shortened, 1)]
    first = len(numbered)
    remaining = room - (estimate(numbered[0]) if numbered else 0.0)
    while first > 1 and (remaining := remaining - estimate(numbered[first - 1])) >= 0:
        first -= 1
    if first <= 2:
        return numbered, shortened == list(texts)
    return [numbered[0], f"[… {first - 1} more …]", *numbered[first:]], False


def _bounded(files: Mapping[str, str]) -> dict[str, str]:
    only_read = [path for path, how in files.items() if how == "read"]
    left_out = set(only_read[: max(0, len(only_read) - READ_FILES)])
    return {path: how for path, how in files.items() if path not in left_out}


def _ends(text: str, limit: int) -> str:
    """Head and tail of it, at most about `limit` characters; three quarters of them from the head."""
    if len(text) <= limit:
        return text
    head = limit * 3 // 4
    return f"{text[:head]}[… {len(text) - limit:,} characters …]{text[len(text) - (limit - head) :]}"
