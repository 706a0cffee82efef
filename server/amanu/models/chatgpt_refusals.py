"""OpenAI's refusals of requests that count towards a ChatGPT plan, as sentences that say what to do
(developers.openai.com/siwc)."""

from collections.abc import Mapping

from amanu.core.model import AuthFailed, ModelError, Overloaded, QuotaExhausted, RequestRefused
from amanu.models.errors import sentence
from amanu.models.quotas import in_words

PLAN_PREFIX = "subscription_sharing_"
"""Every code begins with it."""

REFUSED_FIELDS = ("max_output_tokens", "prompt_cache_key", "service_tier")
"""Fields we otherwise send that are not allowed in a request on a plan."""

_KEY = "or use an API key: `amanu auth logout openai`, then `amanu auth set openai`."
_OF_CODE: Mapping[str, tuple[type[ModelError], str]] = {
    "user_not_eligible": (
        AuthFailed,
        f"Your ChatGPT account cannot use its plan here. Sign in with another one: `amanu auth login openai`, {_KEY}",
    ),
    "invalid_user": (
        AuthFailed,
        f"OpenAI does not know the ChatGPT account you signed in with. Run: `amanu auth login openai`, {_KEY}",
    ),
    "usage_limit_exceeded": (QuotaExhausted, f"Your ChatGPT plan has reached its usage limit. Wait, {_KEY}"),
    "usage_unavailable": (Overloaded, "OpenAI cannot tell right now how much of your ChatGPT plan is left."),
    "route_not_supported": (
        RequestRefused,
        f"A ChatGPT plan cannot be used for this kind of request. Choose another model, {_KEY}",
    ),
    "unsupported_capability": (
        RequestRefused,
        f"A ChatGPT plan does not include something this request needs. Choose another model, {_KEY}",
    ),
}


def plan_error(
    vendor: str, code: str, status: int | None, message: str, *, wait: float | None = None, details: str = ""
) -> ModelError:
    """The error for a code that begins with `PLAN_PREFIX`. `message` comes from the service; the caller has masked
    it. `wait` is in seconds."""
    otherwise = (
        RequestRefused,
        f"OpenAI does not allow your ChatGPT plan to be used for this. Choose another model, {_KEY}",
    )
    kind, words = _OF_CODE.get(code.removeprefix(PLAN_PREFIX), otherwise)
    back = f" It is available again in {in_words(wait)}." if wait is not None and wait >= 60 else ""
    return kind(f"{words}{back} OpenAI says: {sentence(message)}", vendor, status, wait, details)
