"""`amanu completion`, and what its script for bash completes."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from amanu.cli import completion, completion_values, run
from support.cli_in_process import InProcessCli
from support.cli_process import script

CASES: tuple[tuple[Sequence[str], str], ...] = (
    (["amanu", "ses"], "sessions"),
    (["amanu", "sessions", "re"], "rename reject"),
    (["amanu", "run", "--mo"], "--mode --model"),
    (["amanu", "run", "--mode", "a"], "ask acceptEdits auto"),
    (["amanu", "run", "--mode", "=", "p"], "plan"),
    (["amanu", "run", "--effort", "x"], "xhigh"),
    (["amanu", "run", "--service-tier", "f"], "fast flex"),
    (["amanu", "run", "--model", ""], "acme:big acme:small other:big"),
    (["amanu", "run", "--model", "acm"], "acme:big acme:small"),
    (["amanu", "run", "--model", "acme", ":"], "big small"),
    (["amanu", "run", "--model", "acme", ":", "b"], "big"),
    (["amanu", "run", "--model", "=", "acme", ":", "b"], "big"),
    (["amanu", "chat", "--model", "acme", ":", "big", "--effort", "lo"], "low"),
    (["amanu", "run", '"fix: it"', "--mode", "d"], "draft"),
    (["amanu", "chat", "--session", "5"], "57dc"),
    (["amanu", "sessions", "show", ""], "latest 57dc"),
    (["amanu", "sessions", "diff", "latest", "src/"], "src/main.py"),
    (["amanu", "run", "--workspace", "s"], "src"),
    (["amanu", "run", "--record", "no"], "notes.txt"),
    (["amanu", "auth", "set", "gem"], "gemini"),
    (["amanu", "completion", ""], "bash zsh fish"),
)
"""The words of a line as bash cuts them, the last one unfinished → what is offered."""
STUB = r"""
amanu() {
  case $3 in
  models) printf '%s\t%s\n' acme:big 'Big $(touch ran)' acme:small Small other:big Big '$(touch${IFS}ran)' Evil ;;
  sessions) printf '%s\t%s\n' latest 'the latest' 57dc 'fix the tests' ;;
  esac
}
offered() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _amanu
  echo "${COMPREPLY[*]}"
}
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
"""


def test_what_bash_offers(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in ("src/main.py", "notes.txt"):
        (tmp_path / name).touch()
    lines = [STUB, f"source {shlex.quote(str(completion.SHARE / 'amanu.bash'))}"]
    lines += [f"offered {shlex.join(words)}" for words, _ in CASES]
    done = subprocess.run(["bash", "-c", "\n".join(lines)], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    offered = [line.replace(" $(touch${IFS}ran)", "") for line in done.stdout.splitlines()]
    assert list(zip([words for words, _ in CASES], offered, strict=True)) == list(CASES)
    assert not (tmp_path / "ran").exists(), "what a vendor calls its models is no command"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_can_read_theirs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run(
        [shell, "-n", str(completion.SHARE / f"amanu.{shell}")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_script_is_printed_and_nothing_heavy_is_imported() -> None:
    heavy = "asyncio pydantic amanu.session amanu.models amanu.storage"
    code = (
        "import sys; from amanu import __main__; sys.argv = ['amanu', 'completion', 'bash']; __main__.main();"
        f"print([name for name in {heavy.split()} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (completion.SHARE / "amanu.bash").read_text("utf-8")
    assert done.stderr == "[]\n"


def test_values(tmp_path: Path, inside: InProcessCli) -> None:
    assert inside.run(completion.main, "--values", "sessions", cwd=tmp_path).stdout == ""
    model = script(tmp_path, {"text": "Hello."})
    inside.run(run.main, "greet\x1b[31m me\n$(now)", "--model", model, cwd=tmp_path)
    latest, session = inside.run(completion.main, "--values", "sessions", cwd=tmp_path).stdout.splitlines()
    assert latest == "latest\tthe latest session"
    session_id, _, title = session.partition("\t")
    assert session_id.isalnum() and title.startswith("greet me")
    models = inside.run(completion.main, "--values", "models", cwd=tmp_path).stdout.splitlines()
    assert models and all(":" in line.split("\t")[0] for line in models)


def test_values_that_a_shell_could_read_as_more_are_not_printed(
    tmp_path: Path, inside: InProcessCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def models() -> list[tuple[str, str]]:
        return [("acme:$(now)", "Big"), ("acme:a b", "Big"), ("acme:big-1.5@x", "Big\x1b]0;title\x07\n2")]

    monkeypatch.setattr(completion_values, "_models", models)
    assert inside.run(completion.main, "--values", "models", cwd=tmp_path).stdout == "acme:big-1.5@x\tBig 2\n"
