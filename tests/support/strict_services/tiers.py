"""Service tiers as OpenAI and OpenRouter take them, from a table of the services' own."""

import re
from typing import Any

from support.strict_services.refusals import Refused, need
from support.strict_services.script import Say

_DATE = r"(-\d{4}-\d\d-\d\d)?$"
_FLEX = re.compile(
    rf"(o3|o4-mini|gpt-5(\.[1245])?|gpt-5(\.4)?-(mini|nano)|gpt-5\.[45]-pro|gpt-5\.6-(sol|terra|luna)"
    rf"|gpt-6-(astra|sol|luna)|gpt-6\.1-(sol|terra)){_DATE}"
)
_PRIORITY = re.compile(
    rf"(o3|o4-mini|gpt-4o(-mini)?|gpt-4\.1(-mini|-nano)?|gpt-5(\.[1245])?|gpt-5(\.4)?-mini|gpt-5\.3-codex"
    rf"|gpt-5\.6-(sol|terra|luna)|gpt-6-(astra|sol|luna)|gpt-6\.1-(sol|terra)){_DATE}"
)


def check_tier(body: dict[str, Any], *, routed: bool = False) -> None:
    """Refuse a tier there is not, or that the model does not have."""
    tier = body.get("service_tier", "auto")
    model: str = body["model"]
    if routed and model.startswith("google/"):
        need(tier in ("auto", "standard", "flex", "priority"), "service_tier: Invalid option")
        return
    if routed and not model.startswith("openai/"):
        need("service_tier" not in body, f"service_tier: not supported by {model}")
        return
    values = ("auto", "default", "flex", "priority", *(() if routed else ("fast", "scale", "ultrafast")))
    need(tier in values, f"Invalid value: '{tier}'. Supported values are: {', '.join(values)}.")
    model = model.removeprefix("openai/")
    taken = {"flex": _FLEX, "priority": _PRIORITY, "fast": _PRIORITY, "ultrafast": re.compile("gpt-6-astra$")}.get(tier)
    if taken is not None and taken.match(model) is None:
        raise Refused(f"Invalid service_tier argument: {tier} is not available for {model}.", 400)


def served(say: Say, body: dict[str, Any]) -> str:
    """The tier that a reply names."""
    tier = say.tier or body.get("service_tier", "auto")
    if tier == "priority" and re.match(r"gpt-6", body["model"]):
        return "fast"  # as OpenAI has called it since July 2026
    return "default" if tier == "auto" else tier
