"""The real relay, daemon and --alone over fake sessions: `fake_session_server.py relay|daemon|alone`, or `old-daemon
BUILD`, a daemon of that build."""

import sys
from pathlib import Path
from typing import Any

MODE, *REST = sys.argv[1:]
sys.path.insert(0, str(Path(__file__).parent.parent))
DAEMON = [sys.executable, "-P", __file__, "daemon"]


def core() -> Any:
    from support.fake_sessions import FakeSessions

    return FakeSessions()


match MODE:
    case "alone":
        from amanu.daemon.standalone import serve_alone

        code = serve_alone(core)
    case "relay":
        from amanu.daemon.relay import main

        code = main(REST, DAEMON)
    case "old-daemon":
        from amanu.frontends.lsp import handshake

        handshake.BUILD = REST.pop(0)
        from amanu.daemon.main import main as daemon

        code = daemon(REST, core)
    case _:
        from amanu.daemon.main import main as daemon

        code = daemon(REST, core)
sys.exit(code)
