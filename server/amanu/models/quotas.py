"""What an error says about quotas: how long to wait, and whether waiting a little can help at all.

Google says it in the error's `details`, on both of its wires; the words alone do not tell a minute's quota from a
day's there. The others use words of their own, an error code, or just a long Retry-After.
"""

import json
import re
import time
from datetime import UTC, datetime
from typing import Any, cast

BUSY_SECONDS = 300.0
"""A wait longer than that is no busy minute but a quota (as Gemini CLI judges)."""

_USED_UP = re.compile(
    r"credit balance is too low|insufficient[ _](quota|balance|credits?|funds)|requires more credits"
    r"|reached your (specified )?API usage limit|billing[ _](error|hard[ _]limit)",
    re.I,
)
"""How the vendors say that there is no credit left, or that the user's own limit is reached, whatever the status:
Anthropic uses 400 and 402, OpenAI 429, OpenRouter 402 and 403."""


def used_up(status: int | None, message: str, wait: float | None) -> bool:
    """Is it an allowance that a minute's wait does not bring back?"""
    if status == 402 or (status == 429 and ((wait or 0) > BUSY_SECONDS or re.search(r"\blimit: 0\b", message))):
        return True
    return status in (None, 400, 403, 429) and _USED_UP.search(message) is not None


def google_wait(error: dict[str, Any], message: str) -> float | None:
    """Seconds from RetryInfo, else from the words, else a minute for a quota per minute."""
    for detail in _objects(error.get("details")):
        if str(detail.get("@type", "")).endswith("RetryInfo"):
            match = re.fullmatch(r"(\d+(?:\.\d+)?)s", str(detail.get("retryDelay", "")))
            if match:
                return float(match[1])
    return retry_in(message) or (60.0 if "PerMinute" in json.dumps(error, default=str) else None)


def google_daily(error: dict[str, Any]) -> bool:
    """Is it a quota per day? The RetryInfo that comes with it names seconds all the same."""
    quotas = [
        str(violation.get("quotaId", ""))
        for detail in _objects(error.get("details"))
        for violation in _objects(detail.get("violations"))
    ]
    return any("PerDay" in quota or "Daily" in quota for quota in quotas)


def retry_in(message: str) -> float | None:
    """Seconds from words such as "Please retry in 34.07s" (Google), "try again in 20ms" or "in 7m12s" (OpenAI)."""
    match = re.search(
        r"(?:retry|try again) in (?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)(ms|s))?", message, re.I
    )
    if match is None or not any(match.groups()):
        return None
    days, hours, minutes = (int(match[group] or 0) for group in (1, 2, 3))
    seconds = float(match[4] or 0) / (1000 if match[5] == "ms" else 1)
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def access_in(message: str) -> float | None:
    """Seconds until the time in words such as "You will regain access on 2026-12-01 at 00:00 UTC" (Anthropic)."""
    match = re.search(r"regain access on (\d{4}-\d\d-\d\d)(?: at (\d\d:\d\d))?", message, re.I)
    if match is None:
        return None
    try:
        access_time = datetime.fromisoformat(f"{match[1]}T{match[2] or '00:00'}").replace(tzinfo=UTC)
    except ValueError:
        return None
    return max(0.0, access_time.timestamp() - time.time())


def in_words(seconds: float) -> str:
    """A wait for a user: "40 seconds", "12 minutes", "5 hours"."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.0f} hours"


def _objects(value: Any) -> list[dict[str, Any]]:
    """The JSON objects in a list; none when it is something else."""
    return [item for item in cast(list[Any], value) if isinstance(item, dict)] if isinstance(value, list) else []
