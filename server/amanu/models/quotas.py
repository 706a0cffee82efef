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


def used_up(status: int | None, said: str, wait: float | None) -> bool:
    """Is it an allowance that a minute's wait does not bring back?"""
    if status == 402 or (status == 429 and ((wait or 0) > BUSY_SECONDS or re.search(r"\blimit: 0\b", said))):
        return True
    return status in (None, 400, 403, 429) and _USED_UP.search(said) is not None


def google_wait(error: dict[str, Any], said: str) -> float | None:
    """Seconds from RetryInfo, else from the words, else a minute for a quota per minute."""
    for detail in _objects(error.get("details")):
        if str(detail.get("@type", "")).endswith("RetryInfo"):
            found = re.fullmatch(r"(\d+(?:\.\d+)?)s", str(detail.get("retryDelay", "")))
            if found:
                return float(found[1])
    return retry_in(said) or (60.0 if "PerMinute" in json.dumps(error, default=str) else None)


def google_daily(error: dict[str, Any]) -> bool:
    """Is it a quota per day? The RetryInfo that comes with it names seconds all the same."""
    quotas = [
        str(each.get("quotaId", ""))
        for detail in _objects(error.get("details"))
        for each in _objects(detail.get("violations"))
    ]
    return any("PerDay" in quota or "Daily" in quota for quota in quotas)


def retry_in(said: str) -> float | None:
    """Seconds from words such as "Please retry in 34.07s" (Google), "try again in 20ms" or "in 7m12s" (OpenAI)."""
    found = re.search(
        r"(?:retry|try again) in (?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)(ms|s))?", said, re.I
    )
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes = (int(found[at] or 0) for at in (1, 2, 3))
    seconds = float(found[4] or 0) / (1000 if found[5] == "ms" else 1)
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def access_in(said: str) -> float | None:
    """Seconds until the time in words such as "You will regain access on 2026-12-01 at 00:00 UTC" (Anthropic)."""
    found = re.search(r"regain access on (\d{4}-\d\d-\d\d)(?: at (\d\d:\d\d))?", said, re.I)
    if found is None:
        return None
    try:
        at = datetime.fromisoformat(f"{found[1]}T{found[2] or '00:00'}").replace(tzinfo=UTC)
    except ValueError:
        return None
    return max(0.0, at.timestamp() - time.time())


def in_words(seconds: float) -> str:
    """A wait for a person: "40 seconds", "12 minutes", "5 hours"."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.0f} hours"


def _objects(value: Any) -> list[dict[str, Any]]:
    """The JSON objects in a list; none when it is something else."""
    return [each for each in cast(list[Any], value) if isinstance(each, dict)] if isinstance(value, list) else []
