"""The services that take a key: where the user gets one, and whether one is taken."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from amanu.core.model import AuthFailed, ModelError, QuotaExhausted, RateLimited, Unreachable
from amanu.models.listing_request import CHECKED_VENDORS, ListingAddress, request_listing
from amanu_protocol.requests import AuthCheckResult


@dataclass(frozen=True)
class KeyService:
    """What a user is told of a service before they have a key."""

    title: str
    about: str
    page: str


KEY_SERVICES: Mapping[str, KeyService] = {
    "anthropic": KeyService("Anthropic", "Claude models", "https://platform.claude.com/settings/keys"),
    "openai": KeyService("OpenAI", "GPT models", "https://platform.openai.com/api-keys"),
    "gemini": KeyService("Google Gemini", "Gemini models", "https://aistudio.google.com/apikey"),
    "openrouter": KeyService("OpenRouter", "hundreds of models of many vendors", "https://openrouter.ai/settings/keys"),
    "bedrock": KeyService(
        "Amazon Bedrock", "Claude in your AWS account", "https://console.aws.amazon.com/bedrock/home#/api-keys"
    ),
    "foundry": KeyService("Microsoft Foundry", "Claude in your Azure account", "https://ai.azure.com"),
    "google-openai": KeyService(
        "Google (OpenAI-compatible)", "Gemini by Google's other interface", "https://aistudio.google.com/apikey"
    ),
    "brave": KeyService("Brave Search", "searches the web", "https://api-dashboard.search.brave.com/app/keys"),
    "tavily": KeyService("Tavily", "searches the web", "https://app.tavily.com"),
}
"""By the name of the vendor, in the order in which they are offered."""


async def check_key(vendor: str, base_url: str, key: str) -> AuthCheckResult:
    """Ask the service for something that only who has a key may see. Costs nothing; takes ten seconds at most."""
    if vendor in KEY_SERVICES and vendor not in CHECKED_VENDORS:
        return untested(vendor)
    title = _title(vendor)
    try:
        await request_listing(ListingAddress(vendor, base_url, key), checking=True)
    except ModelError as error:
        return _refusal(title, urlsplit(base_url).hostname or base_url, error)
    return AuthCheckResult(status="accepted", summary=f"{title} accepts the key.")


def untested(vendor: str) -> AuthCheckResult:
    """Of a service that has nothing to ask for."""
    summary = f"{_title(vendor)} has no way to test a key: the first request will show whether it works."
    return AuthCheckResult(status="untested", summary=summary)


def _title(vendor: str) -> str:
    return KEY_SERVICES[vendor].title if vendor in KEY_SERVICES else vendor


def _refusal(title: str, host: str, error: ModelError) -> AuthCheckResult:
    match error:
        case AuthFailed(status=401 | 400):
            return AuthCheckResult(
                status="refused", summary=f"{title} does not accept this key. Check that it was copied whole."
            )
        case AuthFailed():
            return AuthCheckResult(
                status="refused", summary=f"{title} knows this key, but does not let it list models: {error}"
            )
        case QuotaExhausted():
            return AuthCheckResult(
                status="accepted", summary=f"{title} accepts the key, but its credit or quota is used up."
            )
        case RateLimited():
            return AuthCheckResult(
                status="untested", summary=f"{title} takes no more requests just now, so the key was not tested."
            )
        case Unreachable():
            return AuthCheckResult(
                status="unreachable",
                summary=f"{title} cannot be reached at {host}, so the key was not tested. Check your network.",
            )
        case _:
            return AuthCheckResult(
                status="untested", summary=f"{title} could not say whether it takes the key: {error}"
            )
