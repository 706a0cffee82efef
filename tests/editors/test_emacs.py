"""A real Emacs with Eglot, and no plugin: one server per buffer, no progress, no documents shown, all the rest."""

import json
import os
import subprocess
import sys
from pathlib import Path

from editors.test_neovim import SHOP
from editors.test_neovim_bare import BOTH, RUN
from support.required_programs import needs
from support.running_daemon import signal_daemon

ASK = {
    "calls": [
        {
            "tool": "ask_user",
            "arguments": {
                "questions": [
                    {
                        "header": "Database",
                        "question": "Which database?",
                        "options": [{"label": "SQLite"}, {"label": "Postgres"}],
                    }
                ]
            },
        }
    ]
}
EMACS = Path(__file__).parent / "emacs.el"


def test_prompt_question_review_and_undo(tmp_path: Path) -> None:
    emacs = needs("emacs")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ".git").mkdir()
    shop = folder / "shop.py"
    shop.write_text(SHOP)
    script = tmp_path / "script.json"
    script.write_text(json.dumps([ASK, {"expect": "Answer: Postgres", **RUN}, BOTH, {"text": "Done."}]))
    try:
        done = subprocess.run(
            [emacs, "-Q", "--batch", "-l", str(EMACS)],
            cwd=folder,
            env={
                **os.environ,
                "SHOP": str(shop),
                "SERVE": f"{sys.executable} -P -m amanu serve",
                "MODEL": f"scripted:{script}",
            },
            capture_output=True,
            text=True,
            timeout=150,
        )
    finally:
        signal_daemon()
    told = [line.removeprefix("ok: ") for line in done.stdout.splitlines() if line.startswith("ok: ")]
    assert told[-1:] == ["what was typed is there"], f"{told}\n{done.stdout}\n{done.stderr[-3000:]}"
    assert shop.read_text() == SHOP
