"""Things that the sandbox withheld from a server, told from what the server said."""

import re

from amanu.mcp.config import Access
from amanu.sandbox.denials import NETWORK, READ_ONLY

_DATABASE = re.compile(r"unable to open database file|attempt to write a readonly database", re.IGNORECASE)
"""SQLite, result codes 14 and 8."""


def withheld(access: Access, said: str) -> str:
    """The settings that would have let a server with that access do what it says it could not do, in a sentence for the
    user; "" if it says nothing of the kind."""
    if not access.sandbox:
        return ""
    if READ_ONLY.search(said) and "/.git/" in said:
        return "The sandbox lets no server change a git repository; one with `sandbox = false` can do anything you can."
    if READ_ONLY.search(said) or _DATABASE.search(said):
        workspace = "" if access.writes else "`writes = true` lets it change the workspace, "
        folders = ", ".join(f'"{folder}"' for folder in (*access.caches, "FOLDER"))  # a list replaces the default one
        return (
            f"The sandbox lets it write nothing there. In mcp.toml, {workspace}`caches = [{folders}]` another folder."
        )
    if NETWORK.search(said) and not access.network:
        return "The sandbox gives it no network access. In mcp.toml, `network = true` does."
    return ""
