"""What makes models differ, as data. Code asks for a fact, never for a model's name.

`family(model_id)` says how to talk to a model; `model_info(model_id)` how large its window is and what it costs.
Unknown models of a known vendor get the facts of their nearest relative, or conservative ones.
Sources: the vendors' documentation and SDKs as of 2026-11.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, get_args

from amanu.core.original_models import original
from amanu.core.service_tiers import offers
from amanu_protocol.items import Effort, LongPrompt, ModelInfo, ModelPrices

EFFORTS: tuple[Effort, ...] = get_args(Effort)
"""From least to most."""

Thinking = Literal[
    "adaptive",  # Anthropic: the model decides, effort steers
    "budget",  # a number of tokens
    "level",  # Gemini 3: a word
    "effort",  # OpenAI: a word
    "reasoning",  # OpenRouter: a word in an object, for models of every vendor
    "none",  # no control, or no thinking; thoughts may still arrive
]

MustReturn = Literal[
    "nothing",  # what the model thought may be left out
    "thinking",  # Anthropic with a budget: the replies of the present tool loop open with their thinking
    "signature",  # Gemini 3: in the present tool loop, the first call of each reply carries its signature
    "reasoning",  # DeepSeek, Kimi and similar models: a reply with calls has a `reasoning_content`
]
"""What a request must contain when the model thinks, or it is refused."""

Caching = Literal[
    "marks",  # Anthropic: up to four marks say where a prefix ends
    "one mark",  # OpenRouter, of Claude: one for the whole request, which it puts at the end
    "implicit",  # the service finds a prefix it has seen by itself
    "key",  # OpenAI: implicit, and a key leads the requests of a session to the same cache
]

StatusRole = Literal[
    "user",  # the user's: it goes after their words
    "system",  # Anthropic: a message in mid-conversation, after one of the user
    "developer",  # OpenAI
]
"""The role of the message in which the daemon tells the model how the session is run."""


@dataclass(frozen=True)
class ModelFamily:
    """How to talk to a group of models."""

    name: str
    """Also the name of its additions to the system prompt: `agent/prompts/<name>.md`, if there is one."""
    thinking: Thinking
    efforts: Mapping[Effort, str | int] = field(default_factory=lambda: MappingProxyType({}))
    """Those its models take, from least to most → the word the service knows, or tokens (0: off) where `thinking` is
    "budget"."""
    default_effort: Effort = "medium"
    """The vendor's own, where it names one."""
    thoughts: str = "as text in a field of their own, if at all"
    """How thoughts arrive; for the documentation."""
    must_return: MustReturn = "nothing"
    may_stop_midway: bool = False
    """The model sometimes announces its next step and ends the reply instead of taking it: Gemini, which Gemini CLI
    can check for all its models (`model.skipNextSpeakerCheck`)."""
    prefix_checked: bool = False
    """Anthropic 5.5: a thinking block is refused if anything before it changed."""
    tells_progress: bool = False
    """Anthropic 5.5: what it says between calls comes as thinking; it comes alone where that is asked for
    (`display: "updates"`: platform.claude.com, "Controlling thinking display")."""
    results: str = "a `tool` message for each, errors in words"
    """The form of tool results; for the documentation."""
    max_tools: int | None = None
    """The most tools a request may declare; None: no limit is known."""
    tool_name: int = 64
    """Maximum length of a tool's name, in characters."""
    caching: Caching = "implicit"
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """OpenAI-compatible only; reasoning models refuse `max_tokens`."""
    freeform: bool = False
    """It writes the text of a call without JSON around it, where a tool allows that (`ToolSpec.freeform`)."""
    withheld: frozenset[str] = frozenset()
    """Tools that are not declared to it where `apply_patch` is: it was trained on that one. A call of them still
    runs."""
    max_output: int = 32_000
    """The most output tokens to request, where the service checks prompt plus output against the window."""
    status_role: StatusRole = "user"
    """OpenAI-compatible wires say it as the user's for every family."""
    pictures: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/webp"})
    """Media types it takes, if it sees at all (`ModelInfo.images`). Gemini takes no GIF, OpenAI none that moves."""
    documents: bool = False
    """It reads PDF, if it sees at all."""
    pictures_in_results: bool = False
    """A tool result can hold pictures and documents; else they go right after the results."""

    def effort_value(self, effort: Effort) -> str | int | None:
        """What the service understands of that effort, or else of the next above it that it takes, or of its highest;
        None where nothing can be chosen."""
        values = list(self.efforts.values())
        above = [value for taken, value in self.efforts.items() if EFFORTS.index(taken) >= EFFORTS.index(effort)]
        return next(iter([*above, *values[-1:]]), None)


def _efforts(**values: str | int) -> Mapping[Effort, str | int]:
    return MappingProxyType({effort: values[effort] for effort in EFFORTS if effort in values})


def _words(*taken: Effort) -> Mapping[Effort, str | int]:
    return _efforts(**{effort: effort for effort in taken})


_CLAUDE = ModelFamily(
    "claude",
    "none",
    thoughts="`thinking` blocks, summarised and signed; `redacted_thinking` blocks nobody can read",
    results="`tool_result` blocks before any text, `is_error`",
    tool_name=128,
    caching="marks",
    max_output=64_000,
    pictures=frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"}),
    documents=True,
    pictures_in_results=True,
)
_GEMINI = ModelFamily(
    "gemini-3",
    "level",
    thoughts="`thought` parts, summarised; the signature on the first call, or on any other part",
    results="`functionResponse` parts, in call order, `output` or `error`",
    max_tools=512,
    tool_name=128,
    max_output=65_536,
    documents=True,
    pictures_in_results=True,
    may_stop_midway=True,
)

CLAUDE_ADAPTIVE = replace(
    _CLAUDE, thinking="adaptive", efforts=_words("low", "medium", "high", "xhigh", "max"), default_effort="high"
)
CLAUDE_4_6 = replace(CLAUDE_ADAPTIVE, efforts=_words("low", "medium", "high", "max"))
# Sonnet 5: "role 'system' is not supported on this model".
CLAUDE_TOLD = replace(CLAUDE_ADAPTIVE, status_role="system")
CLAUDE_BOUND = replace(CLAUDE_TOLD, prefix_checked=True)
CLAUDE_5_5 = replace(CLAUDE_BOUND, tells_progress=True)
CLAUDE_5_5_MEDIUM = replace(CLAUDE_5_5, default_effort="medium")
CLAUDE_BOUND_MEDIUM = replace(CLAUDE_BOUND, default_effort="medium")
# Never 0: a loop begun with thinking could not go on without its blocks, nor one begun without go on with them.
CLAUDE_BUDGET = replace(
    _CLAUDE,
    thinking="budget",
    efforts=_efforts(minimal=1_024, low=2_048, medium=8_192, high=24_576),
    must_return="thinking",
    max_output=32_000,
)
CLAUDE_PLAIN = replace(_CLAUDE, thoughts="never", max_output=8_192)
# 3.7 Flash and later refuse MINIMAL, as does Pro (model guides of Google Cloud); so do, perhaps, those still unknown.
GEMINI_3 = replace(_GEMINI, efforts=_efforts(low="LOW", medium="MEDIUM", high="HIGH"), must_return="signature")
GEMINI_3_PRO = replace(GEMINI_3, default_effort="high")
GEMINI_3_FLASH = replace(GEMINI_3, efforts=_efforts(minimal="MINIMAL", low="LOW", medium="MEDIUM", high="HIGH"))
# One reply over several requests, each of at most 65,536 tokens; it may fill the window.
GEMINI_4 = replace(GEMINI_3, max_output=131_072)
GEMINI_4_XHIGH = replace(
    GEMINI_4, efforts=_efforts(low="LOW", medium="MEDIUM", high="HIGH", xhigh="XHIGH"), default_effort="high"
)
GEMINI_2_5 = replace(
    _GEMINI,
    name="gemini-2.5",
    thinking="budget",
    efforts=_efforts(none=0, minimal=512, low=2_048, medium=8_192, high=24_576),
    pictures_in_results=False,  # from Gemini 3 on (ai.google.dev, Function calling: multimodal function responses)
)
GEMINI_2_5_PRO = replace(
    GEMINI_2_5, efforts=_efforts(minimal=128, low=2_048, medium=8_192, high=24_576)
)  # cannot be told not to think

GENERIC = ModelFamily("generic", "none", max_output=8_192)
GPT_PLAIN = replace(
    GENERIC,
    name="gpt",
    thoughts="never",
    max_tools=128,
    caching="key",
    max_output=16_384,
    status_role="developer",
    documents=True,
    pictures_in_results=True,
)
GPT_REASONING = replace(
    GPT_PLAIN,
    thinking="effort",
    efforts=_words("low", "medium", "high"),
    thoughts="`reasoning` items, summarised; what nobody may read comes encrypted and goes back",
    results="a `function_call_output` item for each, errors in words",
    max_tokens_field="max_completion_tokens",
    max_output=64_000,
)
# Codex declares its patch tool so for GPT-5 and later (github.com/openai/codex, models.json).
_PATCHES = frozenset({"edit_file", "write_file"})
GPT_FREEFORM = replace(
    GPT_REASONING, efforts=_words("low", "medium", "high", "xhigh", "max"), freeform=True, withheld=_PATCHES
)
GPT_FREE_OF_THOUGHT = replace(GPT_FREEFORM, efforts=_words("none", "low", "medium", "high", "xhigh", "max"))
GPT_5_5 = replace(GPT_FREEFORM, efforts=_words("none", "low", "medium", "high", "xhigh"))
GPT_CODEX = replace(GPT_FREEFORM, efforts=_words("low", "medium", "high", "xhigh"))
GPT_5 = replace(GPT_FREEFORM, efforts=_words("low", "medium", "high"))
# OpenRouter says of every model that thinks how much with `reasoning`, and its `reasoning_details` come back unchanged
# (openrouter.ai/docs/guides/best-practices/reasoning-tokens).
_ROUTED = replace(
    GENERIC,
    thinking="reasoning",
    efforts=_words("low", "medium", "high"),
    thoughts="as text or summaries in `reasoning_details`, which go back",
    max_output=32_000,
)
CLAUDE_ROUTED = replace(_ROUTED, name="claude", caching="one mark")
GEMINI_ROUTED = replace(_ROUTED, name="gemini-3", may_stop_midway=True)
GPT_ROUTED = replace(
    _ROUTED,
    name="gpt",
    max_tools=128,
    max_tokens_field="max_completion_tokens",
    max_output=64_000,
    withheld=_PATCHES,
)
GPT_PLAIN_ROUTED = replace(GENERIC, name="gpt", thoughts="never", max_tools=128, max_output=16_384, status_role="user")
# What other extensions give VS Code: its API has no effort and no thoughts, and GitHub Copilot takes 128 tools.
_VSCODE = replace(GENERIC, thoughts="never", results="result parts, in call order", max_tools=128)
CLAUDE_VSCODE = replace(_VSCODE, name="claude")
GEMINI_VSCODE = replace(_VSCODE, name="gemini-3")
GPT_VSCODE = replace(_VSCODE, name="gpt", withheld=_PATCHES)
THINKS_IN_TEXT = replace(GENERIC, thoughts="as text in `reasoning_content`", must_return="reasoning")
"""DeepSeek and Kimi refuse a call that is sent back without its thoughts, even when another model made it. An empty
text will do; GLM and MiniMax accept it too."""
SCRIPTED = replace(GENERIC, name="scripted", thoughts="as the script says")


def _compatible(facts: ModelFamily) -> ModelFamily:
    """A Gemini behind Google's chat-completions address."""
    return replace(
        GENERIC,
        name=facts.name,
        thinking="effort",
        efforts=_words("low", "medium", "high"),
        thoughts="not on this wire; a signature in `extra_content` of the first call",
        must_return=facts.must_return,
        may_stop_midway=facts.may_stop_midway,
        max_output=facts.max_output,
    )


GEMINI_3_COMPATIBLE = _compatible(GEMINI_3)
GEMINI_2_5_COMPATIBLE = _compatible(GEMINI_2_5)

FAMILIES: tuple[tuple[str, ModelFamily], ...] = (
    (r"scripted:", SCRIPTED),
    (r"anthropic:claude-(3-[05]|3-(opus|sonnet|haiku)|2)", CLAUDE_PLAIN),
    (r"anthropic:claude-(3-7|(opus|sonnet|haiku)-4(-[015])?(-\d{8})?$)", CLAUDE_BUDGET),
    (r"anthropic:claude-(opus|sonnet|haiku)-4-6", CLAUDE_4_6),
    (r"anthropic:claude-(opus-(4-8|5)|(fable|mythos)-5)(-\d{8})?$", CLAUDE_TOLD),
    (r"anthropic:claude-(opus|sonnet|haiku)-4-[78]", CLAUDE_ADAPTIVE),
    (r"anthropic:claude-((sonnet|haiku)-5|(fable|mythos)-preview)(-\d{8})?$", CLAUDE_ADAPTIVE),
    (r"anthropic:claude-opus-5-5", CLAUDE_5_5_MEDIUM),
    (r"anthropic:claude-haiku-5-5", CLAUDE_BOUND_MEDIUM),
    (r"anthropic:claude-(sonnet-5-5|(fable|mythos)-5-1)", CLAUDE_5_5),
    (r"anthropic:", CLAUDE_BOUND),  # 5.5, Fable 5.1 and whatever is newer than this table
    (r"gemini:gemini-2\.5-pro", GEMINI_2_5_PRO),
    (r"gemini:gemini-(1|2)", GEMINI_2_5),
    (r"gemini:gemini-3(\.[1-6])?-flash", GEMINI_3_FLASH),
    (r"gemini:gemini-3(\.\d)?-pro", GEMINI_3_PRO),
    (r"gemini:gemini-4-(hydrogen|neon)", GEMINI_4_XHIGH),
    (r"gemini:gemini-4", GEMINI_4),
    (r"gemini:", GEMINI_3),
    (r"google-openai:(models/)?gemini-(1|2)", GEMINI_2_5_COMPATIBLE),
    (r"google-openai:", GEMINI_3_COMPATIBLE),
    (r"openai:(gpt-(3|4)|chatgpt)", GPT_PLAIN),
    (r"openai:o\d", GPT_REASONING),
    (r"openai:gpt-5(\.[0-2])?(-|$)", GPT_5),
    (r"openai:gpt-5(\.\d)?-codex", GPT_CODEX),
    (r"openai:gpt-5\.[345]", GPT_5_5),
    (r"openai:gpt-(5\.[6-9]|6\.1-terra|6-sol|6-luna)", GPT_FREE_OF_THOUGHT),
    (r"openai:", GPT_FREEFORM),
    (r"openrouter:openai/(gpt-[5-9]|o\d)", GPT_ROUTED),
    (r"openrouter:openai/", GPT_PLAIN_ROUTED),
    (r"openrouter:anthropic/claude-3", replace(GENERIC, name="claude", caching="one mark", max_output=8_192)),
    (r"openrouter:anthropic/claude-", CLAUDE_ROUTED),
    (r"openrouter:google/gemini-[3-9]", GEMINI_ROUTED),
    (r"vscode:.*claude", CLAUDE_VSCODE),
    (r"vscode:.*gemini", GEMINI_VSCODE),
    (r"vscode:.*(gpt|codex)", GPT_VSCODE),
    (r"vscode:", _VSCODE),
    (r"[^:]+:(.*/)?(deepseek|kimi|k3|glm-|minimax)", THINKS_IN_TEXT),
)
"""Pattern for the beginning of a model's id → its family; the first match counts."""

_PATTERNS = tuple((re.compile(pattern), facts) for pattern, facts in FAMILIES)

MAX_TOOLS = min(facts.max_tools for _, facts in FAMILIES if facts.max_tools is not None)
TOOL_NAME = re.compile(rf"[a-zA-Z_][a-zA-Z0-9_-]{{0,{min(facts.tool_name for _, facts in FAMILIES) - 1}}}")
"""The strictest of all families, because a session keeps its tools whichever model it changes to. Gemini wants a
letter or an underscore first; the set of characters is OpenAI's."""


def family(model_id: str) -> ModelFamily:
    """The family of `vendor:model`; `GENERIC` for unknown ones (local servers, custom endpoints)."""
    model_id = original(model_id)
    return next((facts for pattern, facts in _PATTERNS if pattern.match(model_id)), GENERIC)


# Models ------------------------------------------------------------------------------------------------


def _model(
    model_id: str,
    name: str,
    window: int,
    output: int,
    prices: tuple[float, float] | None = None,
    cache: tuple[float, float] | None = None,
    *,
    long: LongPrompt | None = None,
    search: float | None = None,
    thinking: bool = True,
    images: bool = True,
) -> ModelInfo:
    """`prices`: input, output; `cache`: read, write; US dollars per million tokens. `long`: of a long prompt. `search`:
    US dollars for a search of the web."""
    return ModelInfo(
        model_id=model_id,
        name=name,
        context_window=window,
        max_output=output,
        input_price=prices[0] if prices else None,
        output_price=prices[1] if prices else None,
        cache_read_price=cache[0] if cache else None,
        cache_write_price=cache[1] if cache else None,
        long_prompt=long,
        search_price=search,
        thinking=thinking,
        images=images,
        available=False,
    )


_HAIKU_LONG = LongPrompt(above=100_000, input=5, output=5)
_GEMINI_PRO_LONG = LongPrompt(above=200_000, input=2, output=1.5)
_GPT_LONG = LongPrompt(above=272_000, input=2, output=1.5)
"""Of the models with a window of 1,050,000 tokens."""
_GPT_WINDOW = 272_000 + 64_000
"""Tokens: a prompt up to where the whole request costs more (`_GPT_LONG`), and the reply that is asked for. From 5.4 on
1,050,000 fit; who wants them says so (`[context] windows`)."""


def _claude(
    model: str,
    name: str,
    window: int,
    output: int,
    prices: tuple[float, float],
    read: float | None = None,
    long: LongPrompt | None = None,
) -> ModelInfo:
    """`read`: the price of a cache read, a tenth of the input price unless the price list says otherwise. A five-minute
    cache write costs 1.25 times the input price."""
    cache = (round(prices[0] * 0.1, 4) if read is None else read, round(prices[0] * 1.25, 4))
    return _model(f"anthropic:{model}", name, window, output, prices, cache, long=long, search=0.01)


def _gemini(
    model: str,
    name: str,
    prices: tuple[float, float],
    read: float,
    output: int = 65_536,
    long: LongPrompt | None = None,
) -> ModelInfo:
    """`read`: the price of reading from the implicit cache; writing to it costs the same as input."""
    search = 0.035 if model.startswith("gemini-2") else 0.014
    return _model(f"gemini:{model}", name, 1_048_576, output, prices, (read, prices[0]), long=long, search=search)


def _gpt(
    model: str,
    name: str,
    prices: tuple[float, float],
    read: float,
    write: float | None = None,
    long: LongPrompt | None = _GPT_LONG,
) -> ModelInfo:
    """`read`: as in `_gemini`. `write`: of a cache, 1.25 times the input price from 5.6 on."""
    cache = (read, round(prices[0] * 1.25, 4) if write is None else write)
    return _model(f"openai:{model}", name, _GPT_WINDOW, 128_000, prices, cache, long=long, search=0.01)


def _gpt_5(model: str, name: str, prices: tuple[float, float], read: float | None = None) -> ModelInfo:
    """One of before 5.6: writing to a cache costs as much as input. `read`: None where nothing is cached."""
    return _gpt(model, name, prices, prices[0] if read is None else read, write=prices[0], long=None)


def _gpt_4(model: str, name: str, prices: tuple[float, float], read: float, window: int, output: int) -> ModelInfo:
    return _model(f"openai:{model}", name, window, output, prices, (read, prices[0]), search=0.01, thinking=False)


MODELS_DATE = "2026-11-30"
"""The day the models here were compared with the vendors' pages and SDKs."""

MODELS: tuple[ModelInfo, ...] = (
    _claude("claude-opus-5-5", "Claude Opus 5.5", 1_000_000, 128_000, (4, 20), 0.2),
    _claude("claude-sonnet-5-5", "Claude Sonnet 5.5", 1_000_000, 128_000, (2, 10), 0.1),
    _claude("claude-haiku-5-5", "Claude Haiku 5.5", 1_000_000, 128_000, (0.1, 0.5), long=_HAIKU_LONG),
    _claude("claude-fable-5-2", "Claude Fable 5.2", 1_000_000, 128_000, (8, 40), 0.2),
    _claude("claude-fable-5-1", "Claude Fable 5.1", 1_000_000, 128_000, (10, 50), 0.25),
    _claude("claude-opus-5", "Claude Opus 5", 1_000_000, 128_000, (5, 25)),
    _claude("claude-sonnet-5", "Claude Sonnet 5", 1_000_000, 128_000, (2, 10)),
    _claude("claude-opus-4-8", "Claude Opus 4.8", 1_000_000, 128_000, (5, 25)),
    _claude("claude-opus-4-7", "Claude Opus 4.7", 1_000_000, 128_000, (5, 25)),
    _claude("claude-opus-4-6", "Claude Opus 4.6", 1_000_000, 128_000, (5, 25)),
    _claude("claude-sonnet-4-6", "Claude Sonnet 4.6", 1_000_000, 64_000, (3, 15)),
    _claude("claude-opus-4-5", "Claude Opus 4.5", 200_000, 64_000, (5, 25)),
    _claude("claude-haiku-4-5", "Claude Haiku 4.5", 200_000, 64_000, (1, 5)),
    # From 1 December 2026 on; until then Carbon and Argon cost half.
    _gemini("gemini-4-carbon", "Gemini 4 Carbon", (4, 20), 0.2, 131_072),
    _gemini("gemini-4-argon", "Gemini 4 Argon", (4, 20), 0.2, 131_072),
    _gemini("gemini-4-neon", "Gemini 4 Neon", (3, 15), 0.15, 131_072),
    _gemini("gemini-4-hydrogen", "Gemini 4 Hydrogen", (1.5, 7.5), 0.075, 131_072),
    _gemini("gemini-3.8-flash", "Gemini 3.8 Flash", (0.75, 3.75), 0.075),
    _gemini("gemini-3.5-flash", "Gemini 3.5 Flash", (1.5, 9), 0.15),
    _gemini("gemini-3.1-pro-preview", "Gemini 3.1 Pro", (2, 12), 0.2, long=_GEMINI_PRO_LONG),
    _gemini("gemini-3.1-flash-lite", "Gemini 3.1 Flash-Lite", (0.25, 1.5), 0.025),
    _gemini("gemini-2.5-pro", "Gemini 2.5 Pro", (1.25, 10), 0.125, long=_GEMINI_PRO_LONG),
    _gemini("gemini-2.5-flash", "Gemini 2.5 Flash", (0.3, 2.5), 0.03),
    _gpt("gpt-6.2-astra", "GPT-6.2 Astra", (8, 40), 0.4),
    _gpt("gpt-6.2-sol", "GPT-6.2 Sol", (2, 10), 0.1),
    _gpt("gpt-6.1-sol", "GPT-6.1 Sol", (2, 10), 0.1),
    _gpt("gpt-6.1-terra", "GPT-6.1 Terra", (1, 5), 0.05),
    _gpt("gpt-6-astra", "GPT-6 Astra", (10, 50), 1),
    _gpt("gpt-6-sol", "GPT-6 Sol", (2, 10), 0.2),
    _gpt("gpt-6-luna", "GPT-6 Luna", (0.1, 0.5), 0.01),
    _gpt("gpt-5.6-sol", "GPT-5.6 Sol", (4, 20), 0.4),
    _gpt("gpt-5.6-terra", "GPT-5.6 Terra", (2, 12), 0.2),
    _gpt("gpt-5.6-luna", "GPT-5.6 Luna", (0.2, 1.2), 0.02),
    _gpt("gpt-5.5", "GPT-5.5", (5, 30), 0.5, write=5),
    _gpt("gpt-5.4", "GPT-5.4", (2.5, 15), 0.25, write=2.5),
    _gpt_5("gpt-5.4-mini", "GPT-5.4 mini", (0.75, 4.5), 0.075),
    _gpt_4("gpt-4.1", "GPT-4.1", (2, 8), 0.5, 1_047_576, 32_768),
    _gpt_5("gpt-5.3-codex", "GPT-5.3 Codex", (1.75, 14), 0.175),
)

UNOFFERED: tuple[ModelInfo, ...] = (
    _claude("claude-mythos-5-2", "Claude Mythos 5.2", 1_000_000, 128_000, (8, 40), 0.2),
    _claude("claude-mythos-5-1", "Claude Mythos 5.1", 1_000_000, 128_000, (10, 50), 0.25),
    _claude("claude-mythos-5", "Claude Mythos 5", 1_000_000, 128_000, (10, 50)),
    _claude("claude-fable-5", "Claude Fable 5", 1_000_000, 128_000, (10, 50)),
    _claude("claude-sonnet-4-5", "Claude Sonnet 4.5", 200_000, 64_000, (3, 15)),
    _gemini("gemini-3.7-flash", "Gemini 3.7 Flash", (0.75, 3.75), 0.075),
    _gemini("gemini-3.6-flash", "Gemini 3.6 Flash", (0.75, 3.75), 0.075),
    _gemini("gemini-3.5-flash-lite", "Gemini 3.5 Flash-Lite", (0.3, 2.5), 0.03),
    _gemini("gemini-3-flash-preview", "Gemini 3 Flash", (0.5, 3), 0.05),
    _gemini("gemini-3.1-pro-preview-customtools", "Gemini 3.1 Pro, custom tools", (2, 12), 0.2, long=_GEMINI_PRO_LONG),
    _gemini("gemini-2.5-flash-lite", "Gemini 2.5 Flash-Lite", (0.1, 0.4), 0.01),
    _gpt("gpt-5.5-pro", "GPT-5.5 pro", (30, 180), 30, write=30),
    _gpt("gpt-5.4-pro", "GPT-5.4 pro", (30, 180), 30, write=30),
    _gpt_5("gpt-5.4-nano", "GPT-5.4 nano", (0.2, 1.25), 0.02),
    _gpt_5("gpt-5.2", "GPT-5.2", (1.75, 14), 0.175),
    _gpt_5("gpt-5.2-pro", "GPT-5.2 pro", (21, 168)),
    _gpt_5("gpt-5.1", "GPT-5.1", (1.25, 10), 0.125),
    _gpt_5("gpt-5", "GPT-5", (1.25, 10), 0.125),
    _gpt_5("gpt-5-mini", "GPT-5 mini", (0.25, 2), 0.025),
    _gpt_5("gpt-5-nano", "GPT-5 nano", (0.05, 0.4), 0.005),
    _gpt_5("gpt-5-pro", "GPT-5 pro", (15, 120)),
    _gpt_4("gpt-4.1-mini", "GPT-4.1 mini", (0.4, 1.6), 0.1, 1_047_576, 32_768),
    _gpt_4("gpt-4o", "GPT-4o", (2.5, 10), 1.25, 128_000, 16_384),
    _gpt_4("gpt-4o-mini", "GPT-4o mini", (0.15, 0.6), 0.075, 128_000, 16_384),
    _model("openai:o3", "o3", 200_000, 100_000, (2, 8), (0.5, 2), search=0.01),
    _model("openai:o3-pro", "o3-pro", 200_000, 100_000, (20, 80), (20, 20), search=0.01),
)
"""Known too, but offered only where their vendor lists them: older ones, and ones that are not for everybody."""

_FLASH_2027 = ModelPrices(input=1.5, output=7.5, cache_read=0.15, cache_write=1.5)
_ANNOUNCED: Mapping[str, tuple[str, ModelPrices]] = MappingProxyType(
    {f"gemini:gemini-3.{minor}-flash": ("2027-01-01", _FLASH_2027) for minor in (6, 7, 8)}
)
"""Model → the day from which it costs something else, and what."""

KNOWN: Mapping[str, ModelInfo] = MappingProxyType({info.model_id: info for info in (*MODELS, *UNOFFERED)})
"""All models of this release, by id."""

_UNKNOWN = {
    "anthropic": _model("", "", 200_000, 32_000),
    "gemini": _model("", "", 1_000_000, 65_536),
    "google-openai": _model("", "", 1_000_000, 65_536),
    "openai": _model("", "", _GPT_WINDOW, 128_000),
    "openrouter": _model("", "", 128_000, 16_384, images=False),
}
_LOCAL = _model("", "", 32_768, 8_192, thinking=False, images=False)


def priced_on(info: ModelInfo, day: str) -> ModelInfo:
    """One of the models here at the prices of that day, an ISO date, as far as they are announced."""
    from_day, prices = _ANNOUNCED.get(info.model_id, ("", None))
    if prices is None or day < from_day:
        return info
    return info.model_copy(update={f"{name}_price": getattr(prices, name) for name in ModelPrices.model_fields})


def model_info(model_id: str) -> ModelInfo:
    """Facts about `vendor:model`, dated ids included (`claude-opus-4-5-20251101`); conservative ones for an unknown
    model. `available` is False: the registry decides whether the model can be used."""
    if (at_its_maker := original(model_id)) != model_id:
        return model_info(at_its_maker).model_copy(update={"model_id": model_id})
    info = KNOWN.get(model_id) or KNOWN.get(re.sub(r"-(\d{8}|\d{4}-\d{2}-\d{2})$", "", model_id))
    vendor, _, model = model_id.partition(":")
    if info is None and vendor == "google-openai":
        info = KNOWN.get(f"gemini:{model.removeprefix('models/')}")
    if info is None:
        info = _UNKNOWN.get(vendor, _LOCAL)
    return with_choices(info.model_copy(update={"model_id": model_id, "name": info.name or model}))


def in_window(info: ModelInfo, window: int) -> ModelInfo:
    """The model with another window, in tokens. A reply gets at most a quarter of it."""
    return info.model_copy(update={"context_window": window, "max_output": min(info.max_output, window // 4)})


def with_choices(info: ModelInfo) -> ModelInfo:
    """The model with the efforts of its family, if it thinks at all, and its service tiers."""
    facts = family(info.model_id)
    efforts = list(facts.efforts) if info.thinking else []
    default = facts.default_effort if efforts else None
    tiers = {tier: offer.price for tier, offer in offers(info.model_id).items()}
    return info.model_copy(update={"efforts": efforts, "default_effort": default, "service_tiers": tiers})
