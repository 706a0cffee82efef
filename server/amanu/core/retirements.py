"""Models that their vendors are shutting down or have shut down, and their successors.

Days are from the vendors' SDKs (anthropic 2.14.0, openai 3.57.0) and deprecation pages, successors from the pages. A
day in a vendor's own listing takes precedence over the one here (`models/catalogue.py`).
"""

import re
from typing import NamedTuple


class Retirement(NamedTuple):
    """The end of a model."""

    day: str | None
    """ISO date of its last day; None: deprecated, and no day is set."""
    successor: str
    """The model to use instead, of the same vendor, without the vendor's name."""


_RETIREMENTS: tuple[tuple[str, Retirement], ...] = (
    (r"anthropic:claude-sonnet-4-5", Retirement("2026-11-30", "claude-sonnet-5-5")),
    (r"anthropic:claude-opus-4-5", Retirement("2027-01-22", "claude-opus-5-5")),
    (r"anthropic:claude-mythos-preview", Retirement("2026-06-30", "claude-mythos-5")),
    (r"openai:(o1|o3-mini|gpt-4|gpt-4-turbo|gpt-4o-2024-05-13)", Retirement("2026-10-23", "gpt-5.6-sol")),
    (r"openai:(o4-mini|gpt-3\.5-turbo)", Retirement("2026-10-23", "gpt-5.6-terra")),
    (r"openai:gpt-4\.1-nano", Retirement("2026-10-23", "gpt-5.6-luna")),
    (r"openai:(gpt-5|o3)", Retirement("2026-12-11", "gpt-6.1-sol")),
    (r"openai:gpt-5-mini", Retirement("2026-12-11", "gpt-6.1-terra")),
    (r"openai:gpt-5-nano", Retirement("2026-12-11", "gpt-6-luna")),
    (r"openai:gpt-4(\.1|\.1-mini|o|o-mini)", Retirement("2027-01-14", "gpt-6-luna")),
    # The stored pages name no successor of these newer than GPT-5.6: that of their size is taken.
    (r"openai:(gpt-5|o3)-pro", Retirement("2026-12-11", "gpt-6.1-sol")),
    (r"openai:(gpt-5\.1|gpt-5\.3-codex)", Retirement("2027-04-01", "gpt-6.1-sol")),
    (r"openai:gpt-5\.4-nano", Retirement("2027-04-01", "gpt-6-luna")),
    (r"(gemini|google-openai):(models/)?gemini-2\.5-.+", Retirement(None, "gemini-3.8-flash")),
)
_DATED = r"(-\d{8}|-\d{4}-\d{2}-\d{2})?"
_PATTERNS = tuple((re.compile(pattern + _DATED), retirement) for pattern, retirement in _RETIREMENTS)


def retirement(model_id: str) -> Retirement | None:
    """When `vendor:model` (dated or not) is shut down; None if no shutdown is announced."""
    return next((entry for pattern, entry in _PATTERNS if pattern.fullmatch(model_id)), None)
