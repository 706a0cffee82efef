"""The environment subjects start in: no keys, proxies or settings of whoever runs the bench."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".tools" / "peers"


def environment(home: Path, **more: str) -> dict[str, str]:
    """The little that programs need, a home of their own, and `more`."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "DO_NOT_TRACK": "1",
        "NO_PROXY": "127.0.0.1,localhost",
        **more,
    }
