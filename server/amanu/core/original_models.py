"""Models under the names that clouds give them → the name at the vendor that made them, whose facts they share."""

import re

_RENAMED = tuple(
    (re.compile(pattern), original)
    for pattern, original in (
        (r"azure:(.+)", r"openai:\1"),  # by the names of deployments, which mostly are OpenAI's
        # `anthropic.claude-opus-5-5`; older ones also `us.anthropic.claude-opus-4-5-20251101-v1:0`.
        (r"bedrock:(?:[a-z-]+\.)?anthropic\.(claude-.+?)(?:-v\d+(?::\d+)?)?", r"anthropic:\1"),
        (r"vertex:(claude-[^@]+)@(\d{8})", r"anthropic:\1-\2"),
        (r"vertex:(claude-[^@]+)(?:@.*)?", r"anthropic:\1"),
        (r"vertex:(gemini-.+)", r"gemini:\1"),
        (r"foundry:(.+)", r"anthropic:\1"),  # deployments, named after their model unless somebody chose otherwise
    )
)


def original(model_id: str) -> str:
    """`vendor:model` under its maker's name; unchanged if the name is the same or unknown."""
    for pattern, made in _RENAMED:
        if (match := pattern.fullmatch(model_id)) is not None:
            return match.expand(made)
    return model_id
