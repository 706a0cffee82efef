"""What a server lists, page by page."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from mcp.client.client import Client
from mcp_types import PaginatedResult

from amanu.mcp import convert
from amanu.mcp.pins import Listing

_MOST_PAGES = 50
_MOST_ITEMS = 1000

T = TypeVar("T")
Page = TypeVar("Page", bound=PaginatedResult, covariant=True)


class Fetch(Protocol[Page]):
    """One of the SDK's requests for a list."""

    def __call__(self, *, cursor: str | None) -> Awaitable[Page]: ...


async def listing_of(client: Client) -> Listing:
    """What the server lists now."""
    capabilities = client.server_capabilities
    tools = await all_pages(client.list_tools, lambda page: page.tools) if capabilities.tools is not None else []
    by_name = {tool.name: convert.server_tool(tool) for tool in reversed(tools)}
    return Listing(
        tuple(by_name[name] for name in sorted(by_name)),
        (client.instructions or "")[: convert.MAX_INSTRUCTIONS],
        capabilities.resources is not None,
        capabilities.prompts is not None,
    )


async def all_pages(fetch: Fetch[Page], items_of: Callable[[Page], Sequence[T]]) -> list[T]:
    """The items of all pages, as many as anybody has a use for."""
    items: list[T] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await fetch(cursor=cursor)
        items += items_of(page)
        cursor = page.next_cursor
        if cursor is None or len(items) >= _MOST_ITEMS:
            break
    return items[:_MOST_ITEMS]
