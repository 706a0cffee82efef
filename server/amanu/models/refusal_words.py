"""The words in which services refuse a request as too long, with the numbers they name, or do not know its model.

Collected from public issues; the tests quote them (`tests/unit/models/test_refusal_words.py`).
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Overflow:
    """The numbers in a refusal of a request that is too long."""

    limit: int | None = None
    """Tokens that fit, as far as it says so."""
    prompt: int | None = None
    """Tokens of the prompt, as the service counts."""
    a_minute: bool = False
    """The limit is one per minute, and the request alone exceeds it."""


def overflow(words: str) -> Overflow | None:
    """The numbers that the words of a refusal give for the request's length; None if they are not about that."""
    words = _own_words(words)
    if (match := _REQUESTED.search(words)) is not None:
        limit, requested = _number(match["limit"]), _number(match["requested"])
        return Overflow(limit, a_minute=True) if limit is not None and (requested or 0) > limit else None
    if _THROTTLED.search(words):
        return None
    matches = [match for pattern in _TOO_LONG if (match := pattern.search(words)) is not None]
    if not matches:
        return None
    named = [match.groupdict() for match in matches]
    limit = next((number for groups in named if (number := _number(groups.get("limit"))) is not None), None)
    return Overflow(limit, next((number for groups in named if (number := _number(groups.get("prompt")))), None))


def per_minute(words: str) -> tuple[int | None, bool]:
    """Input tokens a minute that the words of a 429 name, where they do not say what was requested; None if none. And
    whether what a cache has counts towards them."""
    for pattern, counts_cached in _PER_MINUTE:
        if (match := pattern.search(words)) is not None:
            return _number(match["limit"]), counts_cached
    return None, False


def knows_no_model(status: int | None, words: str) -> bool:
    """Whether a refusal says that there is no such model, or none for this account. A 404 is about the model if it is
    about nothing else that a request names."""
    words = _own_words(words)
    if status in (404, 410):
        return _NOT_THE_MODEL.search(words) is None
    return status in (None, 400, 403) and any(pattern.search(words) for pattern in _NO_MODEL)


def _own_words(words: str) -> str:
    return _QUOTED.split(words[:_LOOKED_AT], maxsplit=1)[0]


def _number(digits: str | None) -> int | None:
    return int(digits.replace(",", "")) if digits else None


def _pattern(words: str) -> re.Pattern[str]:
    """The pattern for `words`, in which LIMIT and PROMPT stand for the numbers."""
    number = r"\(?(?P<{}>\d[\d,]*)\b\)?"
    return re.compile(words.replace("LIMIT", number.format("limit")).replace("PROMPT", number.format("prompt")), re.I)


_LOOKED_AT = 4_000
"""Characters that are read: gateways wrap the service's words in their own, and may quote the request after them."""

_QUOTED = re.compile(r"""["']input["']\s*:""")
"""The beginning of a request that pydantic quotes as not valid: it may be a whole conversation (vLLM, LiteLLM)."""

_TOO_LONG = [
    _pattern(words)
    for words in (
        # OpenAI, Azure, DeepSeek, vLLM, OpenRouter, LiteLLM
        r"maximum context length(?: is|:| of)? LIMIT",  # also Fireworks (langchain#37457), pi#5677
        r"maximum context length|context[ _]length[ _]exceeded|exceed_context_size",
        r"messages resulted in PROMPT tokens",  # crewAI-examples#121
        r"\(PROMPT in (?:the messages|your prompt)[,;] \d+ (?:in|for) the completion",  # fast-agent#621
        r"prompt contains(?: at least)? PROMPT input tokens",  # pi#5929
        r"request has PROMPT input tokens",
        r"reduce the length of the (?:messages|input|prompt)",  # also Groq (pi#129)
        r"exceeds? (?:the )?(?:model's )?(?:max(?:imum)? )?context[ _](?:length|window|size)(?: of LIMIT)?",
        # Anthropic
        r"prompt (?:is )?too long(?:: PROMPT tokens > LIMIT maximum)?",  # pi#129; also Ollama
        r"exceeds? (?:the )?(?:configured |context |token )limit(?:: PROMPT \+ \d+ > LIMIT)?",  # bolt.new#7414
        r"request (?:payload size )?exceeds the maximum size",
        # Gemini
        r"input token count PROMPT exceeds the maximum number of tokens allowed LIMIT",  # pi#129
        r"exceeds the maximum number of tokens|request payload size exceeds",
        # xAI
        r"maximum prompt length is LIMIT(?: but the request contains PROMPT tokens)?",  # cline#3120
        # Kimi
        r"exceeded model token limit(?:: LIMIT)?",  # openclaw#9562
        # GLM
        r"prompt exceeds max(?:imum)? (?:context )?length|reached its context window limit",  # hermes-agent#1877
        # Qwen
        r"range of input length should be \[\d+, LIMIT\]",  # qwen-code#98
        # Mistral
        r"prompt contains PROMPT tokens.* too large for model with LIMIT maximum context length",
        # Cohere
        r"number of tokens (?:\([^)]*\) |in the prompt )?cannot exceed LIMIT",  # sandbox-topically#4
        r"tokens in the prompt cannot exceed \d+ - received PROMPT",
        r"total tokens exceeds the model's max of LIMIT",  # openclaw#58839
        r"too many (?:input )?tokens",
        # Together, Hugging Face
        r"`max_new_tokens` must be <= LIMIT\. Given: PROMPT `inputs`",  # litellm#4934
        r"`inputs` must have less than LIMIT tokens\. Given: PROMPT",
        r"input PROMPT tokens\) is longer than the model's context length \(LIMIT tokens",
        r"max_new_tokens.{0,3} must be",
        # Fireworks
        r"prompt is too long: PROMPT, model",
        # llama.cpp
        r"request \(PROMPT tokens\) exceeds the available context size \(LIMIT tokens",  # maki#319
        r"exceeds the available context|context size has been exceeded|exceed context window of LIMIT",
        # LM Studio
        r"keep the first PROMPT tokens.* context length of only LIMIT",  # lmstudio-bug-tracker#546
        r"n_keep PROMPT >= n_ctx LIMIT",  # opencode#11141
        r"greater than the context length",
        # OpenRouter
        r"input length PROMPT exceeds the maximum allowed input length of LIMIT",
        r"input length PROMPT exceeds",
        # Bedrock
        r"input is too long|exceeds the max input token limit",  # bedrock-chat#95, openclaw#58839
        # GitHub Copilot and Models
        r"token count of PROMPT exceeds the limit of LIMIT",
        r"request body too large.* max size: LIMIT tokens",  # dyad#1950
        # MiniMax, whose number is that of the error
        r"context window exceeds limit",
        # others
        r"prompt too long: PROMPT tokens exceeds max context window of LIMIT",  # ClawX#658
        r"prompt has PROMPT tokens, but the configured context size is LIMIT",
        r"context[ _](?:length|window|size) (?:is|has been) exceeded|request (?:entity )?too large",
    )
]
"""Each may name what others leave out: the first number counts."""

_NO_MODEL = [
    re.compile(words, re.I)
    for words in (
        r"\bmodel\b(?:(?!\b(?:tool|function|schema|file)\b).){0,200} "
        r"(?:does not exist|not found|not exist\b|is not (?:found|supported when using))",
        # OpenAI, Groq, xAI, Qwen (smolagents#808), Ollama (ollama#4449), DeepSeek, Cohere, the plans of ChatGPT
        r"not a valid model ID|no endpoints found for ",  # OpenRouter (continue#10758)
        r"invalid model(?: identifier|:| name)|no models? loaded",  # Mistral, LM Studio (gpt-researcher#1556)
        r"not found the model",  # Kimi
        r"unknown model|模型不存在",  # GLM, Copilot (copilot-sdk#2042)
        r"model identifier is invalid",  # Bedrock
        r"deployment for this resource does not exist|DeploymentNotFound",  # Azure (chatbox#646)
        r"model is not supported|model_not_supported",  # GitHub Copilot
        r"\bmodel\b.{0,100}(?:has been (?:decommissioned|deprecated|retired)|is no longer (?:available|supported))",
    )
]
_NOT_THE_MODEL = re.compile(
    r"\b(?:item|response|file|container|conversation|cached? ?content)s?\b.{0,200}not found|support image", re.I
)
"""OpenAI's reasoning that was not stored, Gemini's caches; OpenRouter's 404 for pictures."""

_REQUESTED = re.compile(
    r"tokens per (?:min(?:ute)?|day) \(TP[MD]\): Limit:? (?P<limit>\d[\d,]*),(?: Used:? [\d,]+,)? "
    r"Requested:? (?P<requested>\d[\d,]*)",
    re.I,
)
"""OpenAI (aider#1880) and Groq (continue#10218). They count what the reply may take, too (koassistant.koplugin#106)."""

_THROTTLED = re.compile(r"please wait before trying again|rate limit|throttl", re.I)
"""Bedrock says "too many tokens" to those who are merely too fast (agentao#88)."""

_PER_MINUTE = (
    (re.compile(r"of (?P<limit>\d[\d,]*) input tokens per minute", re.I), False),  # Anthropic (continue#9623)
    (re.compile(r"input_token_count, limit: (?P<limit>\d+)", re.I), True),  # Gemini
)
"""Whether cached tokens count: not at Anthropic (platform.claude.com, "Rate limits"), and nobody says so of Gemini."""
