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


_CODE = re.compile(r"([A-Za-z_]+)|([A-Z_]{3,}) (.+)", re.DOTALL)
"""A code alone, or one in capitals with the service's own words after it."""


def refusal_sentence(detail: str, recommended: str = "") -> str:
    """The sentence the user sees. `detail` is what the reply gives as its reason: a code, a code and words, words, or
    nothing; `recommended`: the id of a model that may answer. Clients look for the last sentence
    (`cli/chat.py`, `notice.ts`)."""
    if recommended:
        return f"{refusal_sentence(detail)} Its service recommends another: `/model {recommended}`, then send it again."
    if not detail.strip():
        return f"The model declined to answer. {_WAY_OUT}"
    match = _CODE.fullmatch(detail.strip())
    if match is None:
        return detail.strip()
    code, words = match[1] or match[2], match[3]
    reason = _REASONS.get(code.lower())
    opening = (
        f"The service stopped the reply: {reason} ({code})." if reason else f"The service stopped the reply ({code})."
    )
    return " ".join(filter(None, (opening, words, _WAY_OUT)))
