"""A message for a commit, from its diff: one question to a model, without tools. Nothing is committed."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from amanu.agent.loop import error_kind
from amanu.agent.side_query import ask
from amanu.agent.system_prompt import load_prompt
from amanu.agent.usage import add_spends, spend_of
from amanu.core.agent import NOTHING_SPENT
from amanu.core.model import ModelError, TokenUsage
from amanu.core.protected_paths import is_secret
from amanu.core.rules import Rule
from amanu.core.tool import Subject
from amanu.models.routing import AUTO, otherwise
from amanu.permissions.policy import PolicyContext, built_in, decide, of_mode
from amanu.session.services import Services
from amanu.text.fences import block
from amanu.text.wording import summarize_spend
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import ModelInfo
from amanu_protocol.requests import CommitMessageParams, CommitMessageResult

_MAX_DIFF = 60_000
"""Characters of the diff that the model is shown."""
_MIN_FILE = 400
"""Of those, what each file gets at least."""
_SUBJECTS = 10
_MAX_OUTPUT = 2_000
"""Tokens, thoughts included."""

_CUT = "\n… (the changes of this file go on)\n"

_FILE = re.compile(r"^(?=diff --git )", re.M)
_NAMES = (
    re.compile(r"^(?:\+\+\+|---) \"?[a-z]/(.+?)\"?\t?$", re.M),
    re.compile(r"^(?:rename|copy) (?:from|to) \"?(.+?)\"?$", re.M),
    re.compile(r"\Adiff --git \"?[a-z]/(.+?)\"? \"?[a-z]/"),
)
_FENCE = re.compile(r"```[^\n]*\n(.*?)\n?```", re.DOTALL)


async def commit_message(
    services: Services,
    params: CommitMessageParams,
    model_id: str,
    environment: Mapping[str, str],
    count: Callable[[ModelInfo, TokenUsage], None] | None = None,
) -> CommitMessageResult:
    """See the params. `count` is told of the tokens it took. Raises `AmanuError`: also what a model's service
    answered."""
    shown, left_out = _shown_files(services, params)
    if not shown:
        raise AmanuError(
            "invalidParams", "These changes may hold secrets, so they are not sent to a model.", path="diff"
        )
    if model_id == AUTO:
        model_id = otherwise(services.settings, services.registry, environment)
    model, info = await services.registry.resolve(model_id, environment)
    mask = services.secrets.mask_content
    subjects = "\n".join(params.subjects[:_SUBJECTS])
    question = "\n\n".join(
        filter(None, [subjects and block("earlier_first_lines", mask(subjects)), mask(_diff(shown))])
    )
    spend = NOTHING_SPENT

    def count_attempt(used: TokenUsage) -> None:
        nonlocal spend
        spend = add_spends(spend, spend_of(info, used))
        if count is not None:
            count(info, used)

    try:
        answer = await ask(
            model,
            info,
            load_prompt("commit"),
            question,
            session_id="commit-message",
            max_output=_MAX_OUTPUT,
            count=count_attempt,
        )
    except ModelError as error:
        raise AmanuError(error_kind(error), str(error)) from error
    message = _cleaned(answer)
    if not message:
        raise AmanuError("providerError", "The model wrote no message. Try again.")
    return CommitMessageResult(message=message, spend=summarize_spend(spend), left_out=left_out)


def _shown_files(services: Services, params: CommitMessageParams) -> tuple[list[str], list[str]]:
    """The parts of the diff, one for each file, that a model may see; and the names of the other files."""
    rules = [*built_in(), *of_mode("ask"), *services.rules.rules([params.root], trusted=False)]
    may_read = partial(_may_read, rules=rules)
    shown: list[str] = []
    left_out: list[str] = []
    for part in filter(str.strip, _FILE.split(params.diff)):
        names = [name for pattern in _NAMES for name in pattern.findall(part)]
        if all(map(may_read, names)):
            shown.append(part)
        else:
            left_out.append(next(name for name in names if not may_read(name)))
    return shown, left_out


def _may_read(name: str, rules: Sequence[Rule]) -> bool:
    return (
        not is_secret(name) and decide(rules, Subject("read_file", "read", name), PolicyContext()).decision == "allow"
    )


def _diff(parts: list[str]) -> str:
    """All of them in what room there is: long ones are cut first."""
    room = max(_MIN_FILE, _MAX_DIFF // len(parts))
    saved = sum(max(0, room - len(part)) for part in parts)
    long = sum(len(part) > room for part in parts)
    most = room + (saved // long if long else 0)
    cut = [part if len(part) <= most else f"{part[: most - len(_CUT)]}{_CUT}" for part in parts]
    return block("diff", "".join(cut)[:_MAX_DIFF])


def _cleaned(answer: str) -> str:
    fenced = _FENCE.fullmatch(answer.strip())
    text = (answer if fenced is None else fenced[1]).strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`" and "\n" not in text:
        text = text[1:-1].strip()
    return "\n".join(line.rstrip() for line in text.splitlines())
