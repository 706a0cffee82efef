"""`amanu serve`: the language server on stdin and stdout. Nothing heavy is imported before `initialize` is answered."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from amanu.session.sessions import Sessions


def parser() -> "argparse.ArgumentParser":
    import argparse  # an editor starts this command without it

    parser = argparse.ArgumentParser(
        prog="amanu serve",
        description="Speak LSP on stdin and stdout, for an editor. By default through your daemon, which is "
        "started if it is not running, and outlives the editor.",
    )
    parser.add_argument("--alone", action="store_true", help="in this process, without the shared daemon")
    return parser


def main(argv: list[str]) -> int:
    """Serve until the editor leaves. Returns the exit code the language server protocol asks for."""
    if argv == ["--alone"] or (argv and parser().parse_args(argv).alone):
        from amanu.daemon.standalone import serve_alone

        return serve_alone(_sessions)
    from amanu.daemon import relay

    return relay.main(argv)


def _sessions() -> "Sessions":
    from amanu.session.sessions import open_sessions

    return open_sessions()
