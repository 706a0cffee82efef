"""What went wrong on the way to a model, as one of the errors of `core/model.py`; the same for every vendor."""

import errno
import re
import socket
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from amanu.core.model import (
    AuthFailed,
    ContextTooLong,
    ModelError,
    ModelNotFound,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    StreamBroken,
    Unreachable,
)
from amanu.models.quotas import access_in, in_words, used_up
from amanu.models.refusal_words import knows_no_model, overflow, per_minute
from amanu.models.reply_values import vendor_word
from amanu.text.redaction import Secrets

_BAD_KEY = re.compile(r"api[ _]key (?:not valid|not found|expired)|API_KEY_INVALID|invalid[ _]api[ _]key", re.I)
"""Google answers a bad key with 400."""


_OFFLINE = (errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTUNREACH)


def status_error(
    vendor: str, status: int | None, message: str, *, retry_after: float | None = None, details: str = ""
) -> ModelError:
    """The error for an HTTP status (or the same number inside an error event) and the service's words, which
    the caller has masked."""
    text = sentence(message)
    if used_up(status, message, retry_after):
        return quota_exhausted(vendor, status, message, retry_after=retry_after, details=details)
    if knows_no_model(status, message):
        return ModelNotFound(f"{vendor} has no such model for you: {text}", vendor, status, details=details)
    if status == 403 and not _BAD_KEY.search(message):
        return AuthFailed(
            f"{vendor} does not allow this: {text} Check that your account may use this model.",
            vendor,
            status,
            details=details,
        )
    if status in (401, 403) or _BAD_KEY.search(message):
        return AuthFailed(
            f"{vendor} does not accept the key: {text} A key in the environment takes precedence over the one you set; "
            "`amanu auth status` says which it is.",
            vendor,
            status,
            details=details,
        )
    too_long = overflow(message) if status in (None, 400, 413, 422, 429, 500) else None
    if too_long is not None and too_long.a_minute:
        return too_much_a_minute(vendor, status, message, too_long.limit, details=details)
    if status == 413 or (too_long is not None and status != 429):
        limit, prompt = (None, None) if too_long is None else (too_long.limit, too_long.prompt)
        words = f"The conversation does not fit into the model's context window: {text}"
        return ContextTooLong(words, vendor, status, details=details, limit=limit, prompt=prompt)
    if status == 429:
        words = f"{vendor} asks Amanu to slow down: {text}"
        return RateLimited(words, vendor, status, retry_after, details, *per_minute(message))
    if status is None or status in (408, 409, 499) or status >= 500:
        return Overloaded(f"{vendor} cannot answer right now: {text}", vendor, status, retry_after, details=details)
    return RequestRefused(f"{vendor} refused the request: {text}", vendor, status, details=details)


def too_much_a_minute(
    vendor: str, status: int | None, said: str, limit: int | None, *, details: str = ""
) -> ContextTooLong:
    """The error for a request of more tokens than the `limit` a minute: a shorter one helps, a wait does not."""
    words = f"This request is larger than what {vendor} takes from you in a minute: {sentence(said)}"
    return ContextTooLong(words, vendor, status, details=details, limit=limit)


def quota_exhausted(
    vendor: str, status: int | None, said: str, *, retry_after: float | None = None, details: str = ""
) -> QuotaExhausted:
    """The error for an allowance that is used up, and what to do about it. Waits under a minute are left out: services
    name them out of habit, also for a quota of the day."""
    wait = retry_after if retry_after is not None and retry_after >= 60 else access_in(said)
    back = "" if wait is None else f"It should be back in {in_words(wait)}. "
    message = (
        f"Your {vendor} quota or credit for this model is used up: {sentence(said)} "
        f"{back}Choose another model, or check your plan and limits with {vendor}."
    )
    return QuotaExhausted(message, vendor, status, wait, details)


def transport_error(vendor: str, error: Exception, address: str, *, started: bool) -> ModelError:
    """The error for a failure below HTTP. `started`: the reply's headers had come."""
    import httpx2

    if isinstance(error, ModelError):
        return error  # of `transport.py`, in an SDK's wrapping
    reason = _network_fault(error) or (sentence(str(error)) if str(error) else f"{type(error).__name__}.")
    if started:
        return StreamBroken(f"The reply from {vendor} was cut off: {reason}", vendor, details=repr(error))
    if isinstance(error, httpx2.TimeoutException):
        return Unreachable(f"{vendor} at {address} did not answer in time.", vendor, details=repr(error))
    return Unreachable(f"{vendor} at {address} cannot be reached: {reason}", vendor, details=repr(error))


def _network_fault(error: BaseException | None) -> str:
    """Why there is no connection, in words for the user; "" where the error says it better."""
    causes: list[BaseException] = []
    while error is not None and error not in causes:
        causes.append(error)
        error = error.__cause__ or error.__context__
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return "the name was not found. You seem to be offline."
        if isinstance(cause, ConnectionRefusedError):
            return "nothing listens there."
        if isinstance(cause, OSError) and cause.errno in _OFFLINE:
            return "there is no network. You seem to be offline."
    return ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from the headers `retry-after-ms` or `retry-after` (seconds or a date); None if there is none."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return max(0.0, float(milliseconds) / 1000)
        if (seconds := headers.get("retry-after")) is None:
            return None
        if re.fullmatch(r"\d+(?:\.\d+)?", seconds):
            return float(seconds)
        return max(0.0, parsedate_to_datetime(seconds).timestamp() - time.time())
    except ValueError:
        return None


def with_request_id(details: str, headers: Mapping[str, str]) -> str:
    """The details with the id the vendor's support asks for, if the answer has one."""
    request_id = request_id_of(headers)
    return f"{details} (request id: {request_id})" if request_id else details


def request_id_of(headers: Mapping[str, str]) -> str:
    """The id the vendor's support asks for; "" if the answer has none."""
    return vendor_word(next((headers[name] for name in _REQUEST_IDS if headers.get(name)), ""))


_REQUEST_IDS = ("request-id", "x-request-id", "x-generation-id", "apim-request-id")
"""Anthropic's header, OpenAI's, OpenRouter's, Azure's."""


def mask(text: str, key: str | None) -> str:
    """`text` without the key, and without what else looks like one: services quote what they were sent. Of a long text
    the beginning: an error of 64 MB would hold everybody up, and nobody reads it."""
    secrets = Secrets()
    secrets.learn([key or ""])
    if len(text) <= _LONGEST:
        return secrets.mask(text)
    return f"{secrets.mask(text[:_LONGEST])[:-_EDGE]} […]"  # a key that is cut off might not be known for one


_LONGEST = 200_000
"""Characters of an error of a service that are looked at: at worst some 40 ms."""
_EDGE = 4_000
"""Characters before the cut that go; longer than any key but a private one, whose beginning is enough."""


def sentence(message: str) -> str:
    """Foreign words in one line, with a full stop, at most 300 characters."""
    line = " ".join(message.split())
    if len(line) > 300:
        line = line[:299] + "…"
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."
