"""What can go wrong, as a client sees it: LSP's −32803 (request failed) with `data.kind` from a closed list."""

from typing import Literal

from pydantic import JsonValue

from amanu_protocol.base import Wire

REQUEST_FAILED = -32803
INVALID_PARAMS = -32602

ErrorKind = Literal[
    "sessionNotFound",
    "sessionReadOnly",
    "tooManySessions",
    "turnInProgress",
    "staleTurn",
    "approvalNotFound",
    "questionNotFound",
    "proposalNotFound",
    "proposalConflict",
    "blobNotFound",
    "itemNotFound",
    "jobNotFound",
    "commandNotMovable",
    "agentNotFound",
    "authRequired",
    "modelNotFound",
    "modelUnavailable",
    "overloaded",
    "contextTooLong",
    "unsupportedVersion",
    "trustChanged",
    "mcpServerNotFound",
    "mcpServerChanged",
    "permissionDenied",
    "providerError",
    "storageError",
    "invalidRule",
    "invalidParams",
    "internalError",
]
"""The kind of a failure. A client acts by itself on few: `proposalConflict`: preview and decide again ·
`approvalNotFound`, `proposalNotFound`: attach again, and draw the state · `staleTurn`: send a prompt instead ·
`sessionNotFound`: create it, or list · `sessionReadOnly`: only show it · `authRequired`, `modelNotFound`,
`modelUnavailable`: another model. It shows the message of any other, and the hint."""


class ErrorData(Wire):
    """`error.data` of a failed request. The code is −32602 with `invalidParams` and `unsupportedVersion`, −32603 with
    `internalError`, else −32803. JSON-RPC's own errors have no data."""

    kind: ErrorKind
    path: str | None = None
    """The bad field, for `invalidParams`, as `field.index.field`."""
    hint: str | None = None
    """What the user can do about it."""
    details: dict[str, JsonValue] | None = None


class AmanuError(Exception):
    """A failure a user can act on. `str(error)` is a full sentence that says what to do."""

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        hint: str | None = None,
        path: str | None = None,
        details: dict[str, JsonValue] | None = None,
    ) -> None:
        super().__init__(message)
        self.data = ErrorData(kind=kind, hint=hint, path=path, details=details)

    @property
    def kind(self) -> ErrorKind:
        return self.data.kind
