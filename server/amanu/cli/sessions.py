"""`amanu sessions`: list, search, show, rename and delete sessions; see their changes and decide on them. Through the
daemon if it runs, else in this process."""

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal

from amanu.cli import exits
from amanu.cli.console import open_console
from amanu.cli.render import Renderer
from amanu.cli.session_changes import Chosen, decide, show_patch
from amanu.cli.session_lookup import WHOLE, listing, resolve_session_id, session_line
from amanu.cli.session_search import show_found
from amanu.cli.text import one_line, visible
from amanu.cli.usage import usage_line
from amanu.client.daemon_client import DaemonClient, Disconnected
from amanu.client.session_view import attach
from amanu.text.amounts import plural
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Item

_DECISIONS = {
    "accept": "apply what waits for a decision",
    "reject": "discard what waits for a decision",
    "undo": "undo what was applied",
}
_EXITS = (
    "exit codes: 0 done · 1 failed, or nothing was found · 2 wrong usage, or there is nothing at a PATH · 3 some of it "
    "could not be applied, undone or put into the patch"
)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu sessions",
        description="List, search, show, rename and delete stored sessions; see their changes and decide on them.",
        epilog=_EXITS,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="newest first")
    listing.add_argument("--root", metavar="DIR", help="only sessions of this workspace folder")
    listing.add_argument("--limit", type=_limit, default=50, metavar="N", help="at most N (default: 50; 1 to 500)")
    listing.add_argument("--archived", action="store_true", help="archived ones as well")
    listing.add_argument("--json", action="store_true", help="one JSON object")
    search = commands.add_parser("search", help="find sessions by what was said, done and changed in them")
    search.add_argument("words", metavar="WORD", nargs="+", help='all of these words, or "quoted phrases"')
    search.add_argument("--root", metavar="DIR", help="only sessions of this workspace folder")
    search.add_argument("--limit", type=_limit, default=20, metavar="N", help="at most N (default: 20; 1 to 100)")
    search.add_argument("--archived", action="store_true", help="archived ones as well")
    search.add_argument("--json", action="store_true", help="one JSON object")
    show = commands.add_parser("show", help="print a session")
    show.add_argument("id", metavar="ID", help="session id, a prefix of it, or latest")
    show.add_argument("--json", action="store_true", help="the whole state as one JSON object")
    rename = commands.add_parser("rename", help="change the title")
    rename.add_argument("id", metavar="ID", help="session id, a prefix of it, or latest")
    rename.add_argument("title", metavar="TITLE", type=_title)
    delete = commands.add_parser("delete", help="delete permanently")
    delete.add_argument("id", metavar="ID", nargs="+", help="session id, a prefix of it, or latest")
    diff = commands.add_parser("diff", help="print what waits for a decision, as a patch for `git apply`")
    diff.add_argument("--applied", action="store_true", help="what was applied, instead of what waits")
    form = diff.add_mutually_exclusive_group()
    form.add_argument("--stat", dest="form", action="store_const", const="stat", help="a line for each file")
    form.add_argument("--json", dest="form", action="store_const", const="json", help="one JSON object")
    for name, help_text in _DECISIONS.items():
        decision = commands.add_parser(name, help=help_text)
        decision.add_argument("--json", action="store_true", help="one JSON object")
    for name in ("diff", *_DECISIONS):
        about = commands.choices[name]
        about.add_argument("id", metavar="ID", help="session id, a prefix of it, or latest")
        about.add_argument("paths", metavar="PATH", nargs="*", help="only these files and folders")
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv or ["list"])  # the bare word looks
    if arguments.command in ("list", "search") and arguments.root is not None:
        arguments.root = str(Path(arguments.root).resolve())
    return on_running(lambda client: _run(client, arguments))


def on_running(work: Callable[[DaemonClient], Awaitable[int]]) -> int:
    """Let `work` talk to the running daemon, else to a core in this process. Prints errors. Returns the exit code."""

    async def run() -> int:
        from amanu.client.connect import connect_running

        client = await connect_running()
        try:
            return await work(client)
        finally:
            await client.close()

    try:
        return asyncio.run(run())
    except AmanuError as error:
        print(visible(f"{error} {error.data.hint or ''}".rstrip()), file=sys.stderr)
        return exits.of_error(error)
    except Disconnected as error:
        print(error, file=sys.stderr)
        return exits.FAILED


async def _run(client: DaemonClient, arguments: argparse.Namespace) -> int:
    match arguments.command:
        case "list":
            params = r.SessionListParams(root=arguments.root, limit=arguments.limit, archived=arguments.archived)
            await _list(client, params, arguments.json)
        case "search":
            return await _search(client, arguments)
        case "show":
            await _show(client, await resolve_session_id(arguments.id, None, listing(client)), arguments.json)
        case "rename":
            session_id = await resolve_session_id(arguments.id, None, listing(client))
            params = r.SessionRenameParams(session_id=session_id, title=arguments.title)
            await client.request("amanu/session/rename", params, r.Empty)
        case "delete":
            for session_id in [await resolve_session_id(typed, None, listing(client)) for typed in arguments.id]:
                await _delete(client, session_id)
        case verb:
            return await _show_or_decide(client, verb, arguments)
    return exits.OK


async def _show_or_decide(
    client: DaemonClient, verb: Literal["diff", "accept", "reject", "undo"], arguments: argparse.Namespace
) -> int:
    """The commands about a session's changes. Returns the exit code."""
    session_id = await resolve_session_id(arguments.id, None, listing(client))
    chosen = Chosen(arguments.paths)
    if verb == "diff":
        return await show_patch(client, session_id, chosen, applied=arguments.applied, form=arguments.form or "patch")
    return await decide(client, session_id, verb, chosen, as_json=arguments.json)


async def _delete(client: DaemonClient, session_id: str) -> None:
    """For the daemon a session that is not there is fine; a user may have mistyped."""
    params = r.SessionParams(session_id=session_id)
    missing: AmanuError | None = None
    try:
        await client.request(
            "amanu/session/attach", r.SessionAttachParams(session_id=session_id), r.SessionAttachResult
        )
    except AmanuError as error:  # one that is damaged can be deleted, too
        missing = error if error.kind == "sessionNotFound" else None
    await client.request("amanu/session/delete", params, r.Empty)
    if missing is not None:
        raise missing
    print(f"deleted {session_id}")


async def _list(client: DaemonClient, params: r.SessionListParams, as_json: bool) -> None:
    listed = (await client.request("amanu/session/list", params, r.SessionListResult)).sessions
    if as_json:
        print(json.dumps({"sessions": [summary.model_dump(mode="json") for summary in listed]}))
        return
    for summary in listed:
        folder = "" if params.root is not None else f"  {_folder(summary.roots)}"
        print(f"{session_line(summary)}{folder}")
    if not listed:
        print("There are no sessions yet.", file=sys.stderr)


async def _search(client: DaemonClient, arguments: argparse.Namespace) -> int:
    """Nothing found is a failure, as of `grep`. Returns the exit code."""
    typed = " ".join(arguments.words)
    params = r.SessionSearchParams(
        text=typed[:1000], root=arguments.root, limit=min(arguments.limit, 100), archived=arguments.archived
    )
    unread = -1
    while True:
        result = await client.request("amanu/session/search", params, r.SessionSearchResult)
        if not result.unread:
            break
        if unread < 0:
            unread = result.unread
            print(f"Looking through {plural(unread, 'session')} for the first time …", file=sys.stderr)
    if arguments.json:
        print(json.dumps(result.model_dump(mode="json")))
    else:
        show_found(result, typed, open_console(sys.stdout), WHOLE)
    return exits.OK if result.sessions else exits.FAILED


def _folder(roots: Sequence[str]) -> str:
    """The folders of a session, as a user names them."""
    home = str(Path.home())
    return ", ".join(one_line(f"~{root[len(home) :]}" if root.startswith(f"{home}/") else root) for root in roots)


async def _show(client: DaemonClient, session_id: str, as_json: bool) -> None:
    view = await attach(client, session_id)
    state = view.state
    items: list[Item] = list(state.items)
    has_more = state.has_earlier
    while has_more:
        params = r.HistoryPageParams(session_id=session_id, before_item_id=items[0].item_id, limit=1000)
        page = await client.request("amanu/history/page", params, r.HistoryPageResult)
        items[:0] = page.items
        has_more = page.has_earlier and bool(page.items)
    if as_json:
        state.items, state.has_earlier = items, False
        print(json.dumps(state.model_dump(mode="json")))
        return
    console = open_console(sys.stdout)
    console.line(("bold", one_line(state.title) or "Untitled"), ("dim", f"  {session_id}"))
    console.line(("dim", f"{one_line(state.model_id)} · mode {state.mode} · {', '.join(map(one_line, state.roots))}"))
    Renderer(console).show_items(items, state)
    if state.usage is not None:
        console.line(("dim", usage_line(state.usage)))


def _limit(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 500:  # what `SessionListParams` takes
        raise ValueError
    return value


_limit.__name__ = "number"


def _title(text: str) -> str:
    if not 1 <= len(text.strip()) <= 200:  # what `SessionRenameParams` takes
        raise argparse.ArgumentTypeError("a title has 1 to 200 characters")
    return text.strip()
