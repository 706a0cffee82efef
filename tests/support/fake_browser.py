"""A browser of few words: opens a page and goes where it is sent. As a program, what `BROWSER` may name:
`python fake_browser.py ADDRESS`."""

import http.client
import sys
from typing import NamedTuple
from urllib.parse import urlsplit


class Page(NamedTuple):
    address: str
    status: int
    text: str


def visit(address: str) -> list[Page]:
    """The pages on the way, the last one is what the user sees."""
    pages: list[Page] = []
    while address and len(pages) < 5:
        parts = urlsplit(address)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
        try:
            connection.request("GET", address[address.index(parts.netloc) + len(parts.netloc) :])
            answer = connection.getresponse()
            pages.append(Page(address, answer.status, answer.read().decode()))
            address = answer.getheader("location", "") if answer.status in (302, 303) else ""
        finally:
            connection.close()
    return pages


if __name__ == "__main__":
    visit(sys.argv[1])
