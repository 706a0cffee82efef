"""Permission requests for clients that show little of one: nobody approves what they have not been shown."""

from typing import Any

from amanu.frontends.acp.schema import ClientFeatures
from amanu.frontends.acp.tool_calls import code_content, text_content
from amanu.text.display import visible
from amanu.workspace.diff import unified

SHOWS_ONLY_KINDS = frozenset({"CodeCompanion.nvim"})
"""Clients that show the kinds of the options and not their names, and take the last one of a kind. Of the call they
show its diff if that is the first content, and then nothing else; otherwise its title (codecompanion.nvim
lua/codecompanion/interactions/chat/acp/request_permission.lua)."""
_PREFERRED = ("session", "reject")
"""Options that stand for their kind; otherwise the first one does."""
_LABELS = {"allow_once": "Accept", "allow_always": "Always accept"}
"""What those clients call these kinds."""


def shows_names(features: ClientFeatures) -> bool:
    """Whether the client tells options of one kind apart."""
    return features.name not in SHOWS_ONLY_KINDS


def adapted_request(params: dict[str, Any], features: ClientFeatures, *, diff_is_all: bool = True) -> dict[str, Any]:
    """The params of a `session/request_permission` as this client can show them. `diff_is_all`: nothing but the diffs
    is to be decided."""
    if shows_names(features):
        return params
    options: dict[str, dict[str, Any]] = {}
    for option in params["options"]:
        if option["kind"] not in options or option["optionId"] in _PREFERRED:
            options[option["kind"]] = option
    return {**params, "options": [*options.values()], "toolCall": _titled(params["toolCall"], options, diff_is_all)}


def _titled(call: dict[str, Any], options: dict[str, dict[str, Any]], diff_is_all: bool) -> dict[str, Any]:
    """The call with all there is to know in its title, unless it is an edit of one file."""
    texts = [each for each in call["content"] if each["type"] == "content"]
    diffs = [each for each in call["content"] if each["type"] == "diff"]
    if diff_is_all and len(diffs) == 1 and call["content"][0] is diffs[0]:
        return call
    meanings = [f"- {_LABELS[kind]}: {option['name']}" for kind, option in options.items() if kind in _LABELS]
    shown = [call["title"], *(each["content"]["text"] for each in texts), *map(_diff, diffs), "\n".join(meanings)]
    first = texts or [text_content(call["title"])]
    return {**call, "title": "\n\n".join(shown), "content": [*first, *diffs]}


def _diff(content: dict[str, Any]) -> str:
    diff = visible(unified(content["path"], content["oldText"] or "", content["newText"]))
    return code_content(diff.rstrip(), "diff")["content"]["text"]
