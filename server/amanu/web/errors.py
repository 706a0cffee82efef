"""What can go wrong on the web, each as a sentence the model can act on."""

from typing import Literal

from amanu.core.tool import ToolError

WebErrorKind = Literal["badUrl", "denied", "unreachable", "timeout", "redirects", "status", "type", "tooBig", "broken"]
"""`badUrl`: not an http(s) URL · `denied`: an address not on the public internet · `unreachable`: no such name,
no connection · `timeout`: too slow · `redirects`: too many · `status`: an error status · `type`: nothing that can be
read as text · `tooBig` · `broken`: the response is damaged."""


class WebError(ToolError):
    """A page could not be fetched."""

    def __init__(self, kind: WebErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: WebErrorKind = kind
