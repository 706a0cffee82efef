"""Refusals as sentences for the user: what happened, why (if the service says), and what to do about it."""

import re

_REASONS = {
    "content_filter": "the safety filter stopped it",
    "safety": "the safety filter stopped it",
    "image_safety": "the safety filter stopped it",
    "sensitive": "the safety filter stopped it",
    "model_armor": "a filter your organisation set up stopped it",
    "prohibited_content": "the request or the reply touches on prohibited content",
    "blocklist": "it contains a word on the service's blocklist",
    "spii": "it would have contained sensitive personal data",
    "recitation": "it would have quoted protected text at length",
    "language": "the language is not supported",
    "cyber": "the request looks like an attack on computers",
    "bio": "the request looks like work on biological weapons",
    "frontier_llm": "the request looks like work on a competing model",
    "reasoning_extraction": "the request asks for the model's hidden reasoning",
    "general_harms": "the request looks harmful",
}
"""The services' codes, in lower case (Gemini's `FinishReason`, Anthropic's `stop_details.category`, OpenAI's
`incomplete_details.reason`)."""

_WAY_OUT = "Rephrase the request, leave out whatever may have triggered this, or try another model."


def refusal_sentence(detail: str) -> str:
    """The sentence the user sees. `detail` is what the reply gives as its reason: a code, free text, or nothing."""
    code = detail.strip()
    if not code:
        return f"The model declined to answer. {_WAY_OUT}"
    if reason := _REASONS.get(code.lower()):
        return f"The service stopped the reply: {reason} ({code}). {_WAY_OUT}"
    if re.fullmatch(r"[A-Za-z_]+", code):
        return f"The service stopped the reply ({code}). {_WAY_OUT}"
    return code
