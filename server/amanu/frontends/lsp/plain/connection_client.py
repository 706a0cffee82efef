"""A client of the sessions in the name of a connection: what it knows of its user is the connection's."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from amanu.context.editor import EditorContext

if TYPE_CHECKING:
    from amanu.session.events import Client


class ConnectionClient:
    """The properties of a `Client`; what it is sent is for who inherits."""

    def __init__(self, connection: "Client") -> None:
        self._connection = connection

    @property
    def name(self) -> str:
        return self._connection.name

    @property
    def environment(self) -> Mapping[str, str]:
        return self._connection.environment

    @property
    def trusted_roots(self) -> Collection[str] | None:
        return self._connection.trusted_roots

    @property
    def ripgrep(self) -> str | None:
        return self._connection.ripgrep

    @property
    def context(self) -> EditorContext | None:
        return self._connection.context
