"""The model of the plays: what it says follows from the prompt, so that a play that fails costs no other its lines."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from support.strict_services.http import Fault, Received, Step


def answering(scripts: Iterable[Mapping[str, Sequence[Step]]]) -> Callable[[Received], Step]:
    """To the newest prompt that has one of these words, the steps one after the other."""
    known = {words: steps for script in scripts for words, steps in script.items()}

    def reply(request: Received) -> Step:
        messages: list[dict[str, Any]] = request.json["messages"]
        for at in range(len(messages) - 1, -1, -1):
            said = _said(messages[at])
            steps = next((steps for words, steps in known.items() if words in said), None)
            if steps is None:
                continue
            done = sum(each["role"] == "assistant" for each in messages[at:])
            if done < len(steps):
                return steps[done]
            break
        return Fault("status", status=400, message="The script has no reply to this.", code="script_exhausted")

    return reply


def _said(message: dict[str, Any]) -> str:
    """The user's words of a message, without the results of calls."""
    if message["role"] != "user":
        return ""
    content = message["content"]
    if isinstance(content, str):
        return content
    return json.dumps([each for each in content if each["type"] == "text"], ensure_ascii=False)
