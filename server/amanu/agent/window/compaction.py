"""Compaction replaces old messages by a summary: where to cut, what the summarising model sees, what the summary
holds."""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from amanu.agent.system_prompt import load_prompt
from amanu.agent.window.pruning import describe_call
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
from amanu.core.skills import skill_names
from amanu.core.token_estimate import ASCII, estimate

Ask = Callable[[str, str], Awaitable[str]]
"""System prompt and question → the answer of a model. Raises `ModelError`."""

MAX_RESULT = 2_000
"""Characters the summarising model sees of a result; a summary does not repeat results."""
MAX_CALL = 400
"""Characters it sees of a call."""
USER_SHARE = 0.15
"""Share of the space for the user's own words."""
MAX_USER_TEXT = 6_000
"""Characters shown of one user message, more where there is room …"""
MIN_USER_TEXT = 200
"""… and at least, when there are many; `read_output` shows them in full."""
MAX_SHARE = 0.8
"""A summary that takes more than this share of what it replaces is rejected."""
MAX_READ_FILES = 40
"""How many files that were only read are listed, the latest ones."""
MAX_ACTIONS = 30
"""How many of the last actions are listed when no model could summarise them."""

_BLOCK = r"<((?:%s)(?:-\d+)?)(?: \w+=\"[^\"\n]*\")?>\n.*?\n</\1>"
"""A block as `text/fences.py` makes it."""
_ATTACHED = re.compile(
    _BLOCK % "editor_context|environment|background_commands|session_status|files_changed|project_memory|approved_plan"
    "|available_skills|skill_content|mcp_server",
    re.DOTALL,
)
"""Blocks the daemon attached to the user's words; they are sent again after a compaction."""
_TOLD = re.compile(_BLOCK % "agent_result|hook_context", re.DOTALL)
"""Blocks that are sent only once; they are not the user's words, either."""
_INTRODUCTION = (
    "The conversation before this point was replaced by this summary to make room. It is a record of what was said and "
    "done."
)
_BEGINNING, _END = "<conversation_summary>", "</conversation_summary>"
_GOAL = re.compile(r"^(?:#+|\*\*)\s*goal", re.IGNORECASE | re.MULTILINE)
_THINKING = re.compile(r"<(think|thinking|scratchpad)>.*?</\1>", re.DOTALL | re.IGNORECASE)


class NoSummary(Exception):
    """There is no usable summary; the text says why."""


@dataclass
class Extract:
    """What the messages to be replaced hold, in the forms a summary needs."""

    lines: list[str] = field(default_factory=list[str])
    """The record that the summarising model is shown."""
    user_texts: list[str] = field(default_factory=list[str])
    """The user's own words."""
    files: dict[str, str] = field(default_factory=dict[str, str])
    """Path → "edited" or "read", the last touched last."""
    actions: list[str] = field(default_factory=list[str])
    """Calls and their outcomes, a line each."""
    replies: int = 0
    skills: tuple[str, ...] = ()
    """Names of the skills that were activated."""


def count_replaceable(conversation: Conversation, weights: Sequence[float], keep: float) -> int:
    """How many messages to replace: all but the last ones that together take at most `keep` tokens. The last exchange
    always stays, and a call stays with its results. 0 when there is nothing to gain. `weights`: tokens per message."""
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
    """Whether it means nothing without the reply before it: results, or a system message that asks to continue."""
    return isinstance(message, Results) or (isinstance(message, User) and message.from_system)


def extract(messages: Sequence[Message], earlier: Compacted | None, writers: Collection[str]) -> Extract:
    """What the messages hold. `earlier`: the compaction that the first of them stands for, if it does. `writers`: names
    of the tools that change files."""
    extracted = Extract()
    if earlier is not None:
        extracted.user_texts += earlier.user_texts
        extracted.files |= earlier.files
        extracted.actions += earlier.actions
        extracted.lines += earlier.actions
        extracted.replies = earlier.replies
        extracted.skills = earlier.skills
        messages = messages[1:]
    extracted.skills = tuple(dict.fromkeys([*extracted.skills, *skill_names(messages)]))
    for index, message in enumerate(messages):
        match message:
            case User(from_system=False):
                pictures = [f"[with the picture {picture.name}]" for picture in message.pictures]
                said = _ATTACHED.sub("", message.text)
                text = "\n".join([_TOLD.sub("", said).rstrip(), *pictures])
                extracted.user_texts.append(text)
                extracted.lines.append(f"[user] {text}")
                extracted.lines += (f"[system] {told[0]}" for told in _TOLD.finditer(said))
            case User():
                extracted.lines.append(f"[system] {message.text}")
            case Assistant():
                _add_reply(extracted, message)
            case Results():
                request = messages[index - 1] if index else None
                if isinstance(request, Assistant):
                    _add_results(extracted, request, message, writers)
                _add_notes(extracted, message)
    return extracted


def _add_reply(extracted: Extract, message: Assistant) -> None:
    extracted.replies += 1
    text = "".join(part.text for part in message.parts if isinstance(part, Text)).strip()
    if text:
        extracted.lines.append(f"[programmer] {text}")
        extracted.actions.append(f"said: {_head_and_tail(text, 300)}")


def _add_results(extracted: Extract, request: Assistant, answers: Results, writers: Collection[str]) -> None:
    for call, result in zip(request.calls, answers.results, strict=False):
        line = describe_call(call, MAX_CALL)
        extracted.lines.append(
            f"[call] {line}\n[result{', failed' * result.is_error}] {_head_and_tail(result.text, MAX_RESULT)}"
        )
        outcome = "failed" if result.is_error else "done"
        extracted.actions.append(
            f"{describe_call(call)}: {outcome}; {_head_and_tail(' '.join(result.text.split()), 120)}"
        )
        path = call.arguments.get("path") if isinstance(call.arguments, dict) else None
        if isinstance(path, str) and path and not result.is_error:
            earlier = extracted.files.pop(path, "")
            extracted.files[path] = "edited" if "edited" in earlier or call.tool in writers else "read"


def _add_notes(extracted: Extract, message: Results) -> None:
    for note in message.notes:
        match note:
            case str():
                extracted.user_texts.append(note)
                extracted.lines.append(f"[user] {note}")
            case SystemText(text=text):
                extracted.lines.append(f"[system] {text}")
            case Picture(name=name):
                extracted.lines.append(f"[user showed the picture {name}]")


async def summarise(lines: Sequence[str], earlier: str, focus: str, max_words: int, max_piece: float, ask: Ask) -> str:
    """A summary of the record in about `max_words` words, written by a model that is shown at most `max_piece` tokens
    at a time. `earlier`: the summary so far; `focus`: what the user wants kept; "" for none. Raises `NoSummary`,
    `ModelError`."""
    snapshot = earlier
    for piece in _pieces(lines, max_piece):
        parts = [f"# Earlier summary\n\n{snapshot}"] if snapshot else []
        parts.append(f"# The record\n\n{piece}")
        if focus:
            parts.append(f"# What the user wants you to keep\n\n{focus}")
        parts.append(f"Write the summary now, in at most {max_words} words.")
        snapshot = _validated(await ask(load_prompt("snapshot"), "\n\n".join(parts)))
    return snapshot


def _validated(answer: str) -> str:
    """The summary in an answer. Raises `NoSummary` when there is none."""
    text = _THINKING.sub("", answer).strip()
    if not text:
        raise NoSummary("the model wrote nothing")
    if _GOAL.search(text) is None:
        raise NoSummary("what the model wrote is not a summary")
    return text


def _pieces(lines: Sequence[str], max_piece: float) -> list[str]:
    """The lines joined into pieces of at most about `max_piece` tokens."""
    pieces: list[list[str]] = [[]]
    size = 0.0
    for line in lines:
        line = _head_and_tail(line, max(200, int(max_piece * 2)))
        tokens = estimate(line)
        if pieces[-1] and size + tokens > max_piece:
            pieces.append([])
            size = 0.0
        pieces[-1].append(line)
        size += tokens
    return ["\n\n".join(piece) for piece in pieces]


def compose(
    replaced: int,
    snapshot: str,
    extracted: Extract,
    space: float,
    *,
    by_model: bool,
    in_turn: bool,
    saved_as: str = "",
) -> Compacted:
    """The entry whose message stands for the first `replaced` ones. `by_model`: the snapshot covers all of them;
    otherwise it is an earlier one, and what was done since is listed beside it. `in_turn`: the work goes on. `space`:
    tokens that the conversation may take. `saved_as`: the id under which `read_output` finds the user's words, if they
    are not all shown."""
    actions = () if by_model else tuple(extracted.actions[-MAX_ACTIONS:])
    parts = [f"{_BEGINNING}\n\n{_INTRODUCTION}"]
    if snapshot:
        parts.append(snapshot)
    if actions:
        since = "\n".join(f"- {action}" for action in actions)
        parts.append(f"## What was done last, from the record\n{since}")
    files = _bounded(extracted.files)
    if files:
        parts.append(
            "## Files touched, the latest last\n" + "\n".join(f"- {path}: {action}" for path, action in files.items())
        )
    parts.append("## What the user said, in their words")
    parts += fit_user_texts(extracted.user_texts, space * USER_SHARE)[0]
    if saved_as:
        parts.append(f'[These words in full: read_output(id="{saved_as}")]')
    parts.append(_END)
    if in_turn:
        parts.append("You are in the middle of working on the last of these. Continue from where the record ends.")
    return Compacted(
        replaced=replaced,
        text="\n\n".join(parts),
        snapshot=snapshot,
        actions=actions,
        user_texts=tuple(extracted.user_texts),
        files=dict(files),
        replies=extracted.replies,
        skills=extracted.skills,
    )


def readable(summary: str) -> str:
    """A composed message without its instructions to the model, for the user."""
    return summary.partition(_INTRODUCTION)[2].rpartition(_END)[0].strip()


def fit_user_texts(texts: Sequence[str], max_tokens: float) -> tuple[list[str], bool]:
    """The user's messages, numbered, in about `max_tokens` tokens, and whether they are complete. Long ones are cut to
    head and tail; if that is not enough, only the first and the last ones stay."""
    limit = max(MAX_USER_TEXT, int(max_tokens / ASCII))
    shortened = [_head_and_tail(text, limit) for text in texts]
    while limit > MIN_USER_TEXT and sum(map(estimate, shortened)) > max_tokens:
        limit = limit * 2 // 3
        shortened = [_head_and_tail(text, limit) for text in texts]
    numbered = [f"{number}. {text}" for number, text in enumerate(shortened, 1)]
    first = len(numbered)
    remaining = max_tokens - (estimate(numbered[0]) if numbered else 0.0)
    while first > 1 and (remaining := remaining - estimate(numbered[first - 1])) >= 0:
        first -= 1
    if first <= 2:
        return numbered, shortened == list(texts)
    return [numbered[0], f"[… {first - 1} more …]", *numbered[first:]], False


def _bounded(files: Mapping[str, str]) -> dict[str, str]:
    """The files without the oldest that were only read."""
    only_read = [path for path, action in files.items() if action == "read"]
    omitted = set(only_read[: max(0, len(only_read) - MAX_READ_FILES)])
    return {path: action for path, action in files.items() if path not in omitted}


def _head_and_tail(text: str, limit: int) -> str:
    """Head and tail of a text, about `limit` characters in all, three quarters of them from the head."""
    if len(text) <= limit:
        return text
    head = limit * 3 // 4
    return f"{text[:head]}[… {len(text) - limit:,} characters …]{text[len(text) - (limit - head) :]}"
