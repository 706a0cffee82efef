#!/usr/bin/env python3
"""Holds a built site (argument: its folder) to this: each link and anchor within it leads somewhere, and no page loads
anything from another host."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "link": "href", "source": "srcset", "iframe": "src"}


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors = {"", "top"}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if values.get(LOADED.get(tag, "")):
            self.loaded.append(values[LOADED[tag]])


def faults(site: Path) -> list[str]:
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site}: no page"]
    for path, page in pages.items():
        where = path.relative_to(site)
        found += [f"{where}: loads {url} from elsewhere" for url in page.loaded if urlsplit(url).netloc]
        for link in dict.fromkeys([*page.links, *page.loaded]):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                found.append(f"{where}: nothing at {link}")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{where}: no such anchor: {link}")
    styles = [
        path for path in site.rglob("*.css") if "url(http" in path.read_text("utf-8").replace('"', "").replace("'", "")
    ]
    return found + [f"{path.relative_to(site)}: loads from elsewhere" for path in styles]


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1]).resolve())
    print("\n".join(wrong), file=sys.stderr)
    sys.exit(bool(wrong))
