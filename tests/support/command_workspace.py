"""A workspace to read command lines in, and a small stand-in for what is known of programs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from amanu.core.command import Command, CommandContext, Reading
from amanu.shell.call import Judgement, Word

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_READS = ("ls", "cat", "head", "wc", "sort", "grep", "sed", "find", "date", "printenv", "echo", "tr", "cut")


def workspace(folder: Path) -> CommandContext:
    """A few files: `a.txt`, `b.txt`, `sub/c.txt`, `.env` (which is asked about), `ls` and `run.sh`."""
    root = (folder / "shop").resolve()
    (root / "sub").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "sub/c.txt", ".env", "ls", "run.sh", "Makefile"):
        (root / name).write_text("true\n", "utf-8")
    for name in ("ls", "run.sh"):
        (root / name).chmod(0o755)
    home = folder / "home"
    home.mkdir()
    return CommandContext(root, (root,), {"PATH": PATH, "HOME": str(home.resolve())}, lambda path: path.name != ".env")


def with_environment(here: CommandContext, **values: str) -> CommandContext:
    return replace(here, environment={**here.environment, **values})


def fake_judge(program: str, arguments: Sequence[Word], here: CommandContext) -> Judgement:
    """Reads, and `git status` and `git log`, have no effect; all else does."""
    words = [each.value for each in arguments]
    if program in _READS or (program == "git" and words[:1] in (["status"], ["log"])):
        return Judgement("none", "Only reads.", (program,))
    first = words[0] if words and words[0] and not words[0].startswith("-") else None
    return Judgement("some", "Does something.", (program, first) if first else (program,))


Read = Callable[[str], Reading]


def words(reading: Reading) -> list[tuple[str | None, ...]]:
    return [each.words for each in reading.commands]


def of(reading: Reading, program: str) -> Command:
    return next(each for each in reading.commands if program in each.words)
