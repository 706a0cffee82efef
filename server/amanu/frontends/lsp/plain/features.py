"""LSP's requests with typed params, on pygls' feature table and lsprotocol's types. To import them takes a quarter of a
second: `connection.py` does it when a plain client comes, in a thread."""

import functools
import logging
from collections.abc import Callable
from typing import Any, cast

from cattrs import BaseValidationError, Converter
from cattrs.errors import AttributeValidationNote, IterableValidationNote
from lsprotocol import converters, types
from pygls.lsp.server import LanguageServer

from amanu import __version__
from amanu.frontends.lsp.handshake import BadParams

NAMED_SIZE = 16 * 1024
"""Bytes of the largest message in which the field of the wrong type is looked for, to name it in the error."""

log = logging.getLogger(__name__)


class Features:
    """The `jsonrpc.Features` of one connection; handlers are registered on its `server`, which never sees a stream."""

    def __init__(self) -> None:
        self.server = LanguageServer("amanu", __version__, converter_factory=_converter)  # pyright: ignore[reportUnknownMemberType]
        self._handlers = cast("dict[str, Callable[[Any], Any]]", self.server.protocol.fm.features)  # pyright: ignore[reportUnknownMemberType]

    def call(self, method: str, params: Any, size: int) -> Callable[[], Any] | None:
        """See `jsonrpc.Features`. Raises `BadParams`."""
        handler = self._handlers.get(method)
        if handler is None:
            return None
        kind = types.METHOD_TO_TYPES.get(method)
        arguments = params if kind is None or kind[2] is None else _structured(params, kind[2], size)
        return lambda: handler(arguments)

    def is_request(self, method: str) -> bool:
        kind: Any = types.METHOD_TO_TYPES.get(method)
        return kind is not None and kind[1] is not None  # the stubs say that everything has an answer

    def as_json(self, value: Any) -> Any:
        return _converter().unstructure(value)


def _structured(params: Any, kind: Any, size: int) -> Any:
    """Raises `BadParams`, naming the field if that is cheap: for the name cattrs must collect every error, which takes
    half a minute if a text of 200,000 characters stands where a list should, and all clients would wait."""
    try:
        return _converter().structure(params, kind)
    except Exception:
        path = "params"
        if size <= NAMED_SIZE:
            try:
                _converter(detailed=True).structure(params, kind)
            except BaseValidationError as error:
                path = _bad_path(error)
            except Exception:
                log.debug("cannot tell which field is wrong")
        raise BadParams(path, "as the LSP specification says") from None


def _bad_path(error: BaseException) -> str:
    """The field cattrs could not read, as `field.index.field` in the names of the wire."""
    path: list[str] = []
    while isinstance(error, BaseValidationError):
        error = error.exceptions[0]
        for note in getattr(error, "__notes__", ()):
            if isinstance(note, AttributeValidationNote):
                first, *parts = note.name.split("_")
                path.append(first + "".join(part.capitalize() for part in parts))
            elif isinstance(note, IterableValidationNote):
                path.append(str(note.index))
    return ".".join(path) or "params"


@functools.cache
def _converter(detailed: bool = False) -> Converter:
    """One for all connections: making it costs 2 ms, its first use 18 ms. `detailed`: tells all
    that is wrong, and where; else it stops at the first."""
    return converters.get_converter(Converter(detailed_validation=detailed))
