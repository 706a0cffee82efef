"""Models that their vendors are shutting down, and their successors, from the vendors' deprecation pages.

A date in a vendor's own listing takes precedence over the one here (`models/catalogue.py`).
"""

import re
from typing import NamedTuple

RETIREMENTS_DATE = "2026-11-23"
"""The day the table was compared with the vendors' pages."""


class Retirement(NamedTuple):
    """The end of a model."""

    day: str | None
    """ISO date of its last day; None: deprecated, and no day is set."""
    successor: str
    """The model to use instead, of the same vendor, without the vendor's name."""


_RETIREMENTS: tuple[tuple[str, Retirement], ...] = (
    (r"anthropic:claude-sonnet-4-5", Retirement("2026-11-30", "claude-sonnet-5-5")),
    (r"openai:gpt-5", Retirement("2026-12-11", "gpt-6.1-terra")),
    (r"openai:gpt-5-(mini|nano)", Retirement("2026-12-11", "gpt-6-luna")),
    (r"openai:o3", Retirement("2026-12-11", "gpt-6.1-terra")),
    (r"openai:gpt-4\.1", Retirement("2027-01-14", "gpt-6.1-terra")),
    (r"openai:gpt-5\.1", Retirement("2027-04-01", "gpt-6.1-terra")),
    (r"(gemini|google-openai):(models/)?gemini-2\.5-.+", Retirement(None, "gemini-3.8-flash")),
)
_DATED = r"(-\d{8}|-\d{4}-\d{2}-\d{2})?"
_PATTERNS = tuple((re.compile(pattern + _DATED), retirement) for pattern, retirement in _RETIREMENTS)


def retirement(model_id: str) -> Retirement | None:
    """When `vendor:model` (dated or not) is shut down; None if no shutdown is announced."""
    return next((entry for pattern, entry in _PATTERNS if pattern.fullmatch(model_id)), None)
