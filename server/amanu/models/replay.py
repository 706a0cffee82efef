"""A recording played in the place of the services: no network, no key. Requests are answered in the order of the
recording, whatever they say; what they say otherwise than the recorded ones is told."""

import json
from typing import Any, cast
from urllib.parse import urlsplit

from amanu.core.model import ModelError
from amanu.models.recording import Exchange, Recording


class OtherThanRecorded(ModelError):
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
        """The next exchange. Raises `OtherThanRecorded` when there is none, or the request goes to another method,
        path or model."""
        number = self._played + 1
        if number > len(self._exchanges):
            raise OtherThanRecorded(f"The recording ends after exchange {self._played}; a further one was asked for.")
        exchange = self._exchanges[self._played]
        asked = _value(body)
        path, recorded_path = urlsplit(url).path, urlsplit(exchange.url).path
        wanted, recorded = _model(path, asked), _model(recorded_path, exchange.body)
        if wanted != recorded:
            raise _other(number, f"the model {wanted or 'none'}", recorded or "none")
        if (method, path) != (exchange.method, recorded_path):
            raise _other(number, f"{method} {path}", f"{exchange.method} {recorded_path}")
        found = difference(exchange.body, asked)
        if self._played and found is not None and self._stopped(asked):
            raise OtherThanRecorded(f"Exchange {self._played} was broken off when it was recorded; it ends here.")
        if found is not None:
            self.differences.append(f"exchange {number}: {found}")
        self._played = number
        return exchange

    def _stopped(self, asked: Any) -> bool:
        """The one before was broken off by us, and this is the same request again: no answer to it is known."""
        before = self._exchanges[self._played - 1]
        return before.end == "aborted" and difference(before.body, asked) is None


def difference(recorded: Any, asked: Any, where: str = "body") -> str | None:
    """The first place where two JSON values differ, in words; None if they are the same."""
    if type(recorded) is not type(asked):
        return f"{where} is {_short(asked)}, recorded was {_short(recorded)}"
    if isinstance(recorded, dict):
        old, new = cast("dict[str, Any]", recorded), cast("dict[str, Any]", asked)
        for name in (*new, *(name for name in old if name not in new)):
            if name not in old or name not in new:
                return f"{where}.{name} is {'new' if name in new else 'missing'}"
            found = difference(old[name], new[name], f"{where}.{name}")
            if found is not None:
                return found
        return None
    if isinstance(recorded, list):
        before, now = cast("list[Any]", recorded), cast("list[Any]", asked)
        for at, (old, new) in enumerate(zip(before, now, strict=False)):
            found = difference(old, new, f"{where}[{at}]")
            if found is not None:
                return found
        return None if len(before) == len(now) else f"{where} has {len(now)} entries, recorded were {len(before)}"
    return None if recorded == asked else f"{where} is {_short(asked)}, recorded was {_short(recorded)}"


def _other(number: int, wanted: str, recorded: str) -> OtherThanRecorded:
    return OtherThanRecorded(f"Exchange {number} of the recording is another one: it is for {recorded}, not {wanted}.")


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
