"""The daemon's errors as ACP's."""

from amanu.frontends.acp.peer import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NOT_FOUND,
    RpcError,
)
from amanu_protocol.errors import AmanuError, ErrorKind

_CODES: dict[ErrorKind, int] = {
    "authRequired": AUTH_REQUIRED,
    "sessionNotFound": NOT_FOUND,
    "modelNotFound": INVALID_PARAMS,
    "modelUnavailable": INVALID_PARAMS,
    "invalidParams": INVALID_PARAMS,
    "turnInProgress": INVALID_REQUEST,
    "sessionReadOnly": INVALID_REQUEST,
}


def rpc_error(error: AmanuError) -> RpcError:
    """The same, with what the user can do about it in the message: few clients show `data`."""
    hint = error.data.hint
    text = f"{error} {hint}" if hint else str(error)
    return RpcError(_CODES.get(error.kind, INTERNAL_ERROR), text, {"kind": error.kind, "hint": hint})
