"""`amanu serve`: the language server on stdin and stdout. Nothing heavy is imported before `initialize` is answered."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amanu.session.sessions import Sessions

USAGE = """\
usage: amanu serve [--alone]

Speak LSP on stdin and stdout, for an editor. By default through the user's daemon, which is started when it does not
run and outlives the editor; with --alone everything happens in this process and ends with it."""


def main(argv: list[str]) -> int:
    """Serve until the editor leaves. Returns the exit code the language server protocol asks for."""
    if argv == ["--alone"]:
        from amanu.daemon.standalone import serve_alone

        return serve_alone(_sessions)
    if argv:
        print(USAGE, file=sys.stdout if argv[0] in ("-h", "--help") else sys.stderr)
        return 0 if argv[0] in ("-h", "--help") else 2
    from amanu.daemon import relay

    return relay.main(argv)


def _sessions() -> "Sessions":
    from amanu.session.sessions import open_sessions

    return open_sessions()
