"""What went wrong with a request, as its reply tells it.

Codes: −32700 not JSON · −32600 not a request, or not now · −32601 unknown method · −32602 bad params, naming the
field · −32803 with `data.kind` for what a user can act on · −32603 our bug · −32800 cancelled · −32002 before
`initialize`.
"""

import os
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from amanu.frontends.lsp.handshake import PROTOCOL_VERSIONS, BadParams
from amanu_protocol.errors import INVALID_PARAMS, REQUEST_FAILED, AmanuError, ErrorData

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
NOT_INITIALIZED = -32002
CANCELLED = -32800
MAX_ERRORS = 1000
"""In one message's `amanu/*` params, above which none is named."""


class UnknownMethod(Exception):
    """No handler has that method."""


def failure(method: str, error: Exception) -> tuple[int, str, Any]:
    """Code, message and data of an error reply."""
    match error:
        case UnknownMethod():
            return METHOD_NOT_FOUND, f"Unknown method {method[:100]}.", None
        case BadParams():
            bad = error.error()
            return bad["code"], f"{method}: {error.path} is missing or ill-typed.", bad["data"]
        case ValidationError() if error.error_count() > MAX_ERRORS:
            message = f"{method}: more than {MAX_ERRORS} fields are missing or ill-typed."
            return INVALID_PARAMS, message, _plain(ErrorData(kind="invalidParams", path="params"))
        case ValidationError():
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            path = ".".join(str(part) for part in first["loc"])
            said = "Input should be an object" if first["type"] == "model_type" else first["msg"][:500]
            data = ErrorData(kind="invalidParams", path=path)
            return INVALID_PARAMS, f"{method}: {path[:200] or 'params'}: {said}.", _plain(data)
        case AmanuError():
            bad = error.kind in ("invalidParams", "unsupportedVersion")
            return INVALID_PARAMS if bad else REQUEST_FAILED, str(error), _plain(error.data)
        case OSError(errno=int(number)):
            data = ErrorData(kind="storageError", hint="`amanu logs` shows what happened.")
            return REQUEST_FAILED, f"{method}: {os.strerror(number)}.", _plain(data)
        case _:
            data = ErrorData(kind="internalError", hint="`amanu logs` shows what happened.")
            return INTERNAL_ERROR, f"{method} failed: internal error.", _plain(data)


def unsupported_version(declared: Sequence[int]) -> AmanuError:
    """The error for a client that speaks only these versions of the protocol, which tells the user what to update. If
    there are none, it tells the client's author what to declare."""
    ours = PROTOCOL_VERSIONS[-1]
    message = "This client names no version of Amanu's protocol."
    hint = "Name a supported version in capabilities.experimental.amanu.protocol of initialize."
    if declared:
        message = f"This client speaks version {max(declared)} of Amanu's protocol, and this daemon version {ours}."
        is_newer = max(declared) > ours
        hint = "Update Amanu." if is_newer else "Update the client: Amanu's extension or plug-in in your editor."
    return AmanuError("unsupportedVersion", message, hint=hint, details={"supported": list(PROTOCOL_VERSIONS)})


def _plain(data: ErrorData) -> Any:
    return data.model_dump(mode="json", by_alias=True, exclude_none=True)
