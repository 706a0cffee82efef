"""Writes everything that is derived from `amanu_protocol`; with `--check` only says what is stale.

    python protocol/generate.py [--check]

Exit code 1: something was (is) stale. The method table and the pydantic models are the one source.
"""

import sys
from pathlib import Path

from amanu_protocol.base import Message, Wire

# The strings under fields become descriptions. Set before any model exists, and only here: it makes pydantic read
# the source of every class, which the daemon's start should not pay for.
for _base in (Wire, Message):
    _base.model_config["use_attribute_docstrings"] = True

from generators import hidden, labels, lua, markdown, schema, typescript  # noqa: E402  (see above)

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    protocol = schema.build()
    texts = {
        "protocol/schema/protocol.json": schema.text(protocol),
        "vscode-extension/src/protocol.ts": typescript.text(protocol),
        "neovim/lua/amanu/protocol.lua": lua.text(protocol),
        "docs/protocol-reference.md": markdown.text(protocol),
        "vscode-extension/src/hidden.ts": hidden.typescript(),
        "neovim/lua/amanu/hidden.lua": hidden.lua(),
        "vscode-extension/src/labels.ts": labels.typescript(),
        "neovim/lua/amanu/labels.lua": labels.lua(),
    }
    stale = {name: text for name, text in texts.items() if _present(ROOT / name) != text}
    for name, text in stale.items():
        if check:
            print(f"stale: {name} (python protocol/generate.py writes it)")
        else:
            (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / name).write_text(text, "utf-8", newline="\n")
            print(f"written: {name}")
    return 1 if stale and check else 0


def _present(path: Path) -> str | None:
    return path.read_bytes().decode("utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
