"""What goes wrong on the web, each a sentence the model can do something about."""

from typing import Literal

from amanu.core.tool import ToolError

WebErrorKind = Literal["badUrl", "denied", "unreachable", "timeout", "redirects", "status", "type", "tooBig", "broken"]
"""`badUrl`: no URL of the web · `denied`: an address that is not of the public internet · `unreachable`: no such name,
no connection · `timeout`: too slow · `redirects`: too many · `status`: the server said no · `type`: nothing that can be
read as text · `tooBig` · `broken`: what came is damaged."""


class WebError(ToolError):
    """A page could not be had."""

    def __init__(self, kind: WebErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: WebErrorKind = kind
