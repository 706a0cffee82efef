"""A recording played in the place of the services: no network, no key. Requests are answered in the order of the
recording, whatever they say; what they say otherwise than the recorded ones is told."""

import json
import re
from typing import Any, cast
from urllib.parse import urlsplit

from amanu.core.model import ModelError
from amanu.models.recording import Exchange, Recording


class ReplayMismatch(ModelError):
    """What is asked is not what the recording answers. Asking again cannot help."""


class Replay:
    """`Player` of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._exchanges = recording.exchanges
        self._played = 0
        self.differences: list[str] = []
        """What was asked otherwise and answered all the same: the first thing of each such exchange."""

    @property
    def left(self) -> int:
        """Exchanges that nobody asked for."""
        return len(self._exchanges) - self._played

    def answer(self, method: str, url: str, body: bytes) -> Exchange:
        """The next exchange. Raises `ReplayMismatch` when there is none, or the request goes to another method,
        path or model."""
        number = self._played + 1
        if number > len(self._exchanges):
            raise ReplayMismatch(f"The recording ends after exchange {self._played}; another one was requested.")
        exchange = self._exchanges[self._played]
        sent = _value(body)
        path, recorded_path = _path(url), _path(exchange.url)
        sent_model, recorded = _model(path, sent), _model(recorded_path, exchange.body)
        if sent_model != recorded:
            raise _other(number, f"the model {sent_model or 'none'}", recorded or "none")
        if (method, path) != (exchange.method, recorded_path):
            raise _other(number, f"{method} {path}", f"{exchange.method} {recorded_path}")
        mismatch = difference(exchange.body, sent)
        if self._played and mismatch is not None and self._stopped(sent):
            raise ReplayMismatch(f"Exchange {self._played} was cut off when it was recorded; it ends here.")
        if mismatch is not None:
            self.differences.append(f"exchange {number}: {mismatch}")
        self._played = number
        return exchange

    def _stopped(self, sent: Any) -> bool:
        """The one before was broken off by us, and this is the same request again: no answer to it is known."""
        previous = self._exchanges[self._played - 1]
        return previous.end == "aborted" and difference(previous.body, sent) is None


def _path(url: str) -> str:
    """Without the cloud project, which may be another than when it was recorded."""
    return re.sub(r"^(.*)/projects/[^/]+/locations/[^/]+", r"\1", urlsplit(url).path)


_ENVIRONMENT = re.compile(r"<environment>\n.*?\n</environment>", re.DOTALL)
"""Names the day and the machine (`context/surroundings.py`)."""


_NOT_ASKED = {"prompt_cache_key", "max_output_tokens"}
"""Fields that say nothing of what is asked: the key is the session's, and a ChatGPT plan takes neither."""


def difference(recorded: Any, sent: Any, location: str = "body") -> str | None:
    """The first place where two JSON values differ, in words; None if they are the same. When and where it was recorded
    makes no difference."""
    if type(recorded) is not type(sent):
        return f"{location} is {_short(sent)}, but {_short(recorded)} was recorded"
    if isinstance(recorded, dict):
        recorded_fields, sent_fields = cast("dict[str, Any]", recorded), cast("dict[str, Any]", sent)
        for name in (*sent_fields, *(name for name in recorded_fields if name not in sent_fields)):
            if location == "body" and name in _NOT_ASKED:
                continue
            if name not in recorded_fields or name not in sent_fields:
                return f"{location}.{name} is {'new' if name in sent_fields else 'missing'}"
            mismatch = difference(recorded_fields[name], sent_fields[name], f"{location}.{name}")
            if mismatch is not None:
                return mismatch
        return None
    if isinstance(recorded, list):
        recorded_items, sent_items = cast("list[Any]", recorded), cast("list[Any]", sent)
        for index, (recorded_fields, sent_fields) in enumerate(zip(recorded_items, sent_items, strict=False)):
            mismatch = difference(recorded_fields, sent_fields, f"{location}[{index}]")
            if mismatch is not None:
                return mismatch
        return (
            None
            if len(recorded_items) == len(sent_items)
            else f"{location} has {len(sent_items)} entries, but {len(recorded_items)} were recorded"
        )
    if recorded == sent or (isinstance(sent, str) and _ENVIRONMENT.sub("", recorded) == _ENVIRONMENT.sub("", sent)):
        return None
    return f"{location} is {_short(sent)}, but {_short(recorded)} was recorded"


def _other(number: int, sent_model: str, recorded: str) -> ReplayMismatch:
    return ReplayMismatch(f"Exchange {number} of the recording is for {recorded}, not {sent_model}.")


def _model(path: str, body: Any) -> str:
    """The model a request is for: in its body, or in the path (Gemini)."""
    named: Any = cast("dict[str, Any]", body).get("model") if isinstance(body, dict) else None
    if isinstance(named, str):
        return named
    return path.partition("/models/")[2].partition(":")[0]


def _value(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"
