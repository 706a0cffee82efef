"""The words of services when a request is too long, as people reported them, and what is learnt from them."""

import pytest

from amanu.core.model import (
    AuthFailed,
    ContextTooLong,
    ModelError,
    ModelNotFound,
    Overloaded,
    RateLimited,
    RequestRefused,
)
from amanu.models.errors import status_error

TOO_LONG: dict[str, tuple[int | None, str, int | None, int | None]] = {
    # where it was reported: (status, words, tokens that fit, tokens of the prompt)
    "crewAIInc/crewAI-examples#121 OpenAI": (
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 tokens. Please "
        "reduce the length of the messages.",
        8192,
        8227,
    ),
    "openai Responses": (
        None,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        None,
        None,
    ),
    "langchain-ai/langchain#11001 OpenAI": (
        400, "This model's maximum context length is 4097 tokens, however you requested 4226 tokens", 4097, None,
    ),
    "tatsu-lab/stanford_alpaca#47 OpenAI": (
        400,
        "This model's maximum context length is 4097 tokens, however you requested 4162 tokens (1090 in your prompt; "
        "3072 for the completion). Please reduce your prompt; or completion length.",
        4097,
        1090,
    ),
    "FoundationAgents/OpenManus#62 Azure": (
        400,
        "This model's maximum context length is 8192 tokens. However, you requested 8213 tokens (6683 in the messages, "
        "730 in the functions, and 800 in the completion). Please reduce the length of the messages, functions, or "
        "completion.",
        8192,
        None,
    ),
    "earendil-works/pi#129 Anthropic": (400, "prompt is too long: 213462 tokens > 200000 maximum", 200_000, 213_462),
    "entropy-research/Devon#88 Anthropic": (
        400, "prompt is too long: 209353 tokens > 199999 maximum", 199_999, 209_353,
    ),
    "stackblitz/bolt.new#7414 Anthropic": (
        400,
        "input length and `max_tokens` exceed context limit: 90402 + 116650 > 204648, decrease input length or "
        "`max_tokens` and try again",
        204_648,
        90_402,
    ),
    "earendil-works/pi#129 Anthropic, bytes": (413, "Request exceeds the maximum size", None, None),
    "earendil-works/pi#129 Gemini": (
        400,
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        1_048_575,
        1_196_265,
    ),
    "cline/cline#3120 xAI": (
        400,
        "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
        131_072,
        136_973,
    ),
    "openclaw/openclaw#9562 Kimi": (
        400,
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
        262_144,
        None,
    ),
    "Kimi, without what was requested": (
        400, "Invalid request: Your request exceeded model token limit: 262144", 262_144, None,
    ),
    "NousResearch/hermes-agent#1877 GLM": (400, "Prompt exceeds max length", None, None),
    "moai-adk#676 GLM": (400, "The model has reached its context window limit.", None, None),
    "QwenLM/qwen-code#98 Qwen": (
        400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]", 204_800, None,
    ),
    "QwenLM/Qwen-Agent#615 Qwen": (400, "Range of input length should be [1, 30720]", 30_720, None),
    "earendil-works/pi#129 Groq": (400, "Please reduce the length of the messages or completion.", None, None),
    "pi, strands Mistral": (
        400,
        "Prompt contains 300000 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
        131_072,
        300_000,
    ),
    "evalstate/fast-agent#621 DeepSeek": (
        400,
        "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the "
        "messages, 8192 in the completion). Please reduce the length of the messages or completion.",
        131_072,
        122_942,
    ),
    "cohere-ai/sandbox-topically#4 Cohere": (
        400,
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354. Try using "
        "a shorter prompt or a smaller max_tokens value.",
        2048,
        None,
    ),
    "Cohere's page of errors": (
        400,
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter "
        "prompt, or enabling prompt truncating.",
        4081,
        4292,
    ),
    "Quansight/ragna#351 Cohere": (
        400,
        "too many tokens: size limit exceeded by 1502 tokens. Try using shorter or fewer inputs, or setting "
        "prompt_truncation='AUTO'.",
        None,
        None,
    ),
    "openclaw/openclaw#58839 Cohere": (400, "total tokens exceeds the model's max of 4096", 4096, None),
    "BerriAI/litellm#4934 Together": (
        400,
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 80125 `inputs` tokens and "
        "4096 `max_new_tokens`",
        4097,
        80_125,
    ),
    "pi Together": (
        400, "The input (516368 tokens) is longer than the model's context length (262144 tokens).", 262_144, 516_368,
    ),
    "langchain-ai/langchain#37457 Fireworks": (
        400, "The prompt is too long: 221782, model maximum context length: 202752", 202_752, 221_782,
    ),
    "pi Ollama": (400, "prompt too long; exceeded max context length by 65590 tokens", None, None),
    "openclaw/openclaw#58839 Ollama": (400, "ollama: context length exceeded for llama3", None, None),
    "Ollama": (400, "the input length exceeds the context length of 4096", 4096, None),
    "tontinton/maki#319 llama.cpp": (
        400,
        "request (144055 tokens) exceeds the available context size (131072 tokens), try increasing it",
        131_072,
        144_055,
    ),
    "llama.cpp, before": (
        400, "the request exceeds the available context size, try increasing it", None, None,
    ),
    "llama.cpp, in mid-stream": (None, "Context size has been exceeded.", None, None),
    "llama-cpp-python#120": (500, "Requested tokens exceed context window of 4096", 4096, None),
    "earendil-works/pi#5929 vLLM": (
        400,
        "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt "
        "contains at least 262145 input tokens, for a total of at least 262145 tokens. Please reduce the length of the "
        "input prompt or the number of requested output tokens. (parameter=input_tokens, value=262145)",
        262_144,
        262_145,
    ),
    "vLLM, the reply": (
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 "
        "tokens and your request has 6123 input tokens (32000 > 32768 - 6123).",
        32_768,
        6123,
    ),
    "lmstudio-bug-tracker#546 LM Studio": (
        400,
        "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context "
        "length of only 32768 tokens, which is not enough. Try to load the model with a larger context length, or "
        "provide a shorter input.",
        32_768,
        111_490,
    ),
    "anomalyco/opencode#11141 LM Studio": (
        400, "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", 7424, 15_028,
    ),
    "pi LM Studio": (
        400,
        "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the "
        "model with a larger context length, or provide a shorter input",
        None,
        None,
    ),
    "ValueCell-ai/ClawX#658 oMLX": (
        400, "Prompt too long: 41911 tokens exceeds max context window of 32768 tokens", 32_768, 41_911,
    ),
    "ddalcu/mlx-serve#66": (400, "Prompt exceeds maximum context length", None, None),
    "MoonshotAI/kimi-code#476 OpenRouter": (
        400,
        "This endpoint's maximum context length is 262144 tokens. However, you requested about 264896 tokens (52139 of "
        "text input, 12757 of tool input, 200000 in the output). Please reduce the length of either one.",
        262_144,
        None,
    ),
    "pi OpenRouter": (
        400, "Input length 240100 exceeds the maximum allowed input length of 131072 tokens.", 131_072, 240_100,
    ),
    "earendil-works/pi#5677": (
        400, "Input length (265330) exceeds model's maximum context length (262144).", 262_144, 265_330,
    ),
    "aws-samples/bedrock-chat#95 Bedrock": (400, "Input is too long for requested model.", None, None),
    "openclaw/openclaw#58839 Bedrock": (
        400, "ValidationException: Input exceeds the max input token limit", None, None,
    ),
    "Azure/azure-sdk-for-python#40986 Azure": (
        400,
        "This model's maximum context length is 128000 tokens. However, you requested 1124171 tokens (124171 in the "
        "messages, 1000000 in the completion). Please reduce the length of the messages or completion.",
        128_000,
        124_171,
    ),
    "dyad-sh/dyad#1950 GitHub Models": (
        413, "Request body too large for gpt-5-mini model. Max size: 4000 tokens.", 4000, None,
    ),
    "pi GitHub Copilot": (400, "prompt token count of 150210 exceeds the limit of 128000", 128_000, 150_210),
    "pi MiniMax": (400, "invalid params, context window exceeds limit (2013)", None, None),
    "Hugging Face": (
        422, "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000", 4096, 5000,
    ),
    "with commas": (
        400, "Prompt has 300,000 tokens, but the configured context size is 131,072 tokens", 131_072, 300_000,
    ),
    "LiteLLM": (
        400, "Requested token count exceeds the model's maximum context length of 131072 tokens.", 131_072, None,
    ),
}  # fmt: skip

NEVER_PASSES: dict[str, tuple[int, str, int]] = {
    # where it was reported: (status, words, tokens a minute)
    "vanna-ai/vanna-flask#11": (
        429,
        "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The input or output "
        "tokens must be reduced in order to run successfully.",
        30_000,
    ),
    "DrShushen/climb#13": (
        429,
        "Request too large for gpt-4o in organization org-X on tokens per min (TPM): Limit 30000, Requested 30601. The "
        "input or output tokens must be reduced in order to run successfully. Visit https://platform.openai.com/account/"
        "rate-limits to learn more.",
        30_000,
    ),
    "continuedev/continue#11717": (
        429,
        "Request too large for gpt-4.1-2025-04-14 (for limit gpt-4.1) in organization org-X on tokens per min (TPM): "
        "Limit 30000, Requested 37313. The input or output tokens must be reduced in order to run successfully.",
        30_000,
    ),
    "brave/pull-merge#100": (
        429,
        "Request too large for gpt-3.5-turbo-0125 in organization org-X on tokens per min (TPM): Limit 1000000, "
        "Requested 44975775. The input or output tokens must be reduced in order to run successfully.",
        1_000_000,
    ),
    "ITSpecialist111/ai_automation_suggester#61": (
        413,
        "Request too large for model `llama-3.3-70b-versatile` in organization `org_x` service tier `on_demand` on "
        "tokens per minute (TPM): Limit 6000, Requested 14810, please reduce your message size and try again.",
        6000,
    ),
    "continuedev/continue#10218": (
        413,
        "Request too large for model `llama-3.3-70b-versatile` in organization `org_x` service tier `on_demand` on "
        "tokens per minute (TPM): Limit 12000, Requested 14137, please reduce your message size and try again. Need "
        "more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing",
        12_000,
    ),
    "zeeyado/koassistant.koplugin#106": (
        413,
        "Request too large for model `openai/gpt-oss-120b` in organization `org_x` service tier `on_demand` on tokens "
        "per minute (TPM): Limit 8000, Requested 32979, please reduce your message size and try again.",
        8000,
    ),
}

PER_MINUTE: dict[str, tuple[str, int | None]] = {
    # where it was reported: (words of a 429 that a wait may mend, tokens a minute if one request may be too much)
    "elizaOS/eliza#4040 Groq": (
        "Rate limit reached for model `llama-3.1-8b-instant` in organization `org_x` service tier `on_demand` on "
        "tokens per minute (TPM): Limit 6000, Used 5034, Requested 1443. Please try again in 4.77s.",
        None,
    ),
    "OpenAI": (
        "Rate limit reached for gpt-4o in organization org-X on tokens per min (TPM): Limit 30000, Used 29100, "
        "Requested 3000. Please try again in 4.2s.",
        None,
    ),
    "FoundationAgents/OpenManus#746 Anthropic": (
        "This request would exceed the rate limit for your organization of 20,000 input tokens per minute. For "
        "details, refer to: https://docs.anthropic.com/en/api/rate-limits.",
        20_000,
    ),
    "continuedev/continue#9623 Anthropic": (
        "This request would exceed the rate limit for your organization (c26fc127-ba09-49d3-a086-a2f26380d5e7) of "
        "30,000 input tokens per minute. For details, refer to: https://docs.claude.com/en/api/rate-limits.",
        30_000,
    ),
    "Anthropic, requests": (
        "This request would exceed the rate limit for your organization of 50 requests per minute.", None,
    ),
    "Anthropic, output": (
        "This request would exceed the rate limit for your organization of 8,000 output tokens per minute.", None,
    ),
    "Gemini": (
        "You exceeded your current quota. * Quota exceeded for metric: generativelanguage.googleapis.com/"
        "generate_content_free_tier_input_token_count, limit: 250000, model: gemini-3.8-flash Please retry in 34.07s.",
        250_000,
    ),
    "Gemini, requests": (
        "Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 5, "
        "model: gemini-3.8-flash Please retry in 34.07s.",
        None,
    ),
    "jin-bo/agentao#88 Bedrock": ("ThrottlingException: Too many tokens, please wait before trying again.", None),
    "busy": ("Too many requests", None),
}  # fmt: skip

OTHERS: dict[str, tuple[int | None, str, type[ModelError]]] = {
    "a call's id": (
        400, "Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64.", RequestRefused,
    ),
    "a tool's description": (
        400, "Invalid 'tools[3].function.description': string too long. Expected a maximum length of 1024.",
        RequestRefused,
    ),
    "too many tools": (
        400, "Invalid 'tools': array too long. Expected an array with maximum length 128.", RequestRefused,
    ),
    "a limit of the reply": (
        400, "max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens", RequestRefused,
    ),
    "groq-moa#8": (
        400, "max_tokens for `llama-3.1-8b-instant` must be less than or equal to 8000", RequestRefused,
    ),
    "a picture": (400, "image exceeds 5 MB maximum: 7340032 bytes > 5242880 bytes", RequestRefused),
    "throttled in mid-stream": (None, "Too many tokens, please wait before trying again.", Overloaded),
    "a key": (401, "prompt is too long: 213462 tokens > 200000 maximum", AuthFailed),
}  # fmt: skip


@pytest.mark.parametrize("case", TOO_LONG)
def test_too_long_in_the_words_of_each_service(case: str) -> None:
    status, words, limit, prompt = TOO_LONG[case]
    error = status_error("Vendor", status, words)
    assert isinstance(error, ContextTooLong)
    assert (error.limit, error.prompt) == (limit, prompt)


@pytest.mark.parametrize("case", NEVER_PASSES)
def test_more_than_a_minute_allows_is_too_long(case: str) -> None:
    status, words, limit = NEVER_PASSES[case]
    error = status_error("Vendor", status, words)
    assert isinstance(error, ContextTooLong) and "Vendor" in error.message
    assert (error.limit, error.prompt) == (limit, None)


@pytest.mark.parametrize("case", PER_MINUTE)
def test_what_a_wait_may_mend_is_a_rate_limit(case: str) -> None:
    words, limit = PER_MINUTE[case]
    error = status_error("Vendor", 429, words)
    assert isinstance(error, RateLimited) and error.limit == limit


@pytest.mark.parametrize("case", OTHERS)
def test_what_only_sounds_alike(case: str) -> None:
    status, words, kind = OTHERS[case]
    assert type(status_error("Vendor", status, words)) is kind


NO_MODEL: dict[str, tuple[int | None, str]] = {
    # where it was reported: (status, words)
    "huggingface/smolagents#808 OpenAI": (404, "The model `o1` does not exist or you do not have access to it."),
    "claude-code#8413 Anthropic": (404, "model: claude-sonnet-5-5"),
    "Gemini": (
        404,
        "models/gemini-9 is not found for API version v1beta, or is not supported for generateContent. Call it.",
    ),
    "continuedev/continue#10758 OpenRouter": (400, "deepseek/deepseek-coder is not a valid model ID"),
    "RightNow-AI/openfang#845 OpenRouter": (404, "No endpoints found for nvidia/hunter-alpha."),
    "ollama/ollama#4449": (404, 'model "deepseek-coder:6.7b" not found, try pulling it first'),
    "gpt-researcher#1556 LM Studio": (
        400, 'Invalid model identifier "o4-mini". Please specify a valid downloaded model (e.g., qwen3-vl-8b).',
    ),
    "gpt-researcher#1556 LM Studio, none": (
        400, "No models loaded. Please load a model in the developer page or use the 'lms load' command.",
    ),
    "DeepSeek": (400, "Model Not Exist"),
    "Mistral": (400, "Invalid model: mistral-9"),
    "Kimi": (404, "Not found the model kimi-9 or Permission denied"),
    "xAI": (
        403, "The model grok-9 does not exist or your team 1a2b does not have access to it. Please ensure.",
    ),
    "GLM": (400, "Unknown Model, please check the model code."),
    "GLM, in Chinese": (400, "模型不存在，请检查模型代码。"),
    "Qwen": (404, "The model `qwen-9` does not exist or you do not have access to it."),
    "Groq": (400, "The model `llama3-70b` has been decommissioned and is no longer supported."),
    "Bedrock": (400, "The provided model identifier is invalid."),
    "chatboxai/chatbox#646 Azure": (
        404, "The API deployment for this resource does not exist. If you created the deployment within the last 5 "
        "minutes, please wait a moment and try again.",
    ),
    "Cohere": (404, "model 'command-9' not found, make sure the correct model ID was used"),
    "Fireworks": (404, "Model not found, inaccessible, and/or not deployed"),
    "vLLM": (404, "The model `qwen` does not exist."),
    "github/copilot-sdk#2042": (400, 'Unknown model "gpt-9". Please ensure the model is onboarded.'),
    "GitHub Copilot": (400, "The requested model is not supported."),
    "openai/codex, on a plan": (
        400, "The 'gpt-9-codex' model is not supported when using Codex with a ChatGPT account.",
    ),
    "a wrong address": (404, "404 page not found"),
    "gone": (410, "Gone."),
}  # fmt: skip

NOT_THE_MODEL: dict[str, tuple[int | None, str, type[ModelError]]] = {
    "an item": (404, "Item with id 'rs_1' not found. Items are not persisted when `store` is false.", RequestRefused),
    "an earlier response": (404, "Previous response with id 'resp_1' not found.", RequestRefused),
    "a cache": (403, "CachedContent not found (or permission denied)", AuthFailed),
    "pictures": (404, "No endpoints found that support image input", RequestRefused),
    "a key": (401, "The model does not exist.", AuthFailed),
    "an account": (403, "Your organization must be verified to use this model.", AuthFailed),
    "a parameter": (400, "Unsupported parameter: 'top_k' is not supported with this model.", RequestRefused),
    "an effort": (400, "This model does not support the effort parameter.", RequestRefused),
    "a call": (400, "The model called a tool that does not exist: function 'foo' not found", RequestRefused),
    "what the user wrote": (
        422,
        '{"detail":[{"type":"missing","loc":["body","n"],"msg":"Field required","input":{"messages":[{"role":"user",'
        '"content":"Why does it say: maximum context length is 4096 tokens?"}]}}]}',
        RequestRefused,
    ),
    "what the user wrote, elsewhere": (
        400,
        "[{'type': 'extra_forbidden', 'loc': ('body', 'x'), 'msg': 'Extra inputs are not permitted', 'input': "
        "'The model does not exist.'}]",
        RequestRefused,
    ),
    "a tool": (400, "messages.2: tool 'read' not found in tools", RequestRefused),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_MODEL)
def test_a_model_that_there_is_not_in_the_words_of_each_service(case: str) -> None:
    error = status_error("Vendor", *NO_MODEL[case])
    assert isinstance(error, ModelNotFound) and error.message.startswith("Vendor")


@pytest.mark.parametrize("case", NOT_THE_MODEL)
def test_what_else_a_service_may_not_find(case: str) -> None:
    status, words, kind = NOT_THE_MODEL[case]
    assert type(status_error("Vendor", status, words)) is kind
