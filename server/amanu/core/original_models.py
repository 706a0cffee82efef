"""Models under other names, a cloud's or a vendor's own for its newest → the model whose facts they share."""

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
        # Google moves them to a new model when it is out.
        (r"(gemini|google-openai):(?:models/)?gemini-flash-latest", r"\1:gemini-3.8-flash"),
        (r"(gemini|google-openai):(?:models/)?gemini-flash-lite-latest", r"\1:gemini-3.5-flash-lite"),
        (r"(gemini|google-openai):(?:models/)?gemini-pro-latest", r"\1:gemini-3.1-pro-preview"),
        # With a version it is the model itself.
        (r"((?:gemini|google-openai):(?:models/)?gemini-\d.*)-latest", r"\1"),
    )
)


def original(model_id: str) -> str:
    """`vendor:model` as its maker calls it; unchanged if the name is the same or unknown."""
    for pattern, made in _RENAMED:
        if (match := pattern.fullmatch(model_id)) is not None:
            model_id = match.expand(made)
    return model_id
