"""What was approved becomes something else before it runs. Scripts that write `A` are what the user sees; whatever
takes their place writes `B`. `B` may only come to be after a question that was about `B`.

`mutate` and `answer` play one way of many (`MUTATORS`, `ANSWERS`); `race` lets a thread swap while a command starts.
They raise `AssertionError`.
"""

import asyncio
import contextlib
import os
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from amanu.sandbox.sandbox import SandboxedCommand
from amanu.sandbox.self_test import Tier
from amanu.tools.shell.command_process import CommandLauncher, CommandPlan, CommandProcess
from amanu.tools.shell.file_identity import MAX_STORED
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import EventMessage, ItemChanged
from amanu_protocol.items import Approval, ToolCall
from amanu_protocol.requests import ApprovalResolveParams
from amanu_protocol.state import SessionState
from support.scripted_session import TWELVE, TWO_HUNKS, ScriptedSession, call, scripted_session, step

When = Literal["asked", "answered", "executing"]
WHEN: tuple[When, ...] = ("asked", "answered", "executing")
"""It changes before the yes · after the yes · after the call was looked at again, while its sandbox is built."""

_PADDING = f"exit\n{'#' * 1023}\n" * (MAX_STORED // 1024 + 1)
SWAPPED = "what ran may not be what was approved"


class Ground:
    """A workspace and what lies around it, made anew for each round."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self.around = folder / "around"
        self.out = self.root / "out" / "ran"

    @property
    def ran(self) -> str:
        """What ran so far, in order."""
        found = [*self.root.rglob("ran"), *self.around.rglob("ran")]
        return "".join(each.read_text() for each in found if each.is_file()).replace("\n", "")

    def lay_out(self) -> None:
        """Everything as the user sees it: it writes `A`."""
        for each in (self.around, self.root.with_name("aside")):
            shutil.rmtree(each, ignore_errors=True)
        if self.root.is_symlink():
            self.root.unlink()
        self.root.mkdir(exist_ok=True)
        for each in self.root.iterdir():
            if each.name == "notes.txt":
                continue
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        for folder in ("out", "sub", "other", "bin"):
            (self.root / folder).mkdir()
        self.out.write_text("")
        for folder in ("first", "second"):
            (self.around / folder).mkdir(parents=True)
        for name in ("x.sh", "y.sh", "real.sh", "sub/x.sh", "Makefile", "package.json", "bin/mine"):
            self.write(name, "A")
        for name in ("evil.sh", "other/x.sh"):
            self.write(name, "B")
        self.write("x.py", "A")
        (self.root / "linked.sh").symlink_to("real.sh")
        (self.root / "cur").symlink_to("sub")
        os.link(self.root / "y.sh", self.root / "hard.sh")
        self.write("big.sh", "A", more=_PADDING)
        self.program("second/tool", "A")
        _put(self.around / "second/npm", "#!/bin/sh\n. ./package.json\n")

    def text(self, name: str, letter: str) -> str:
        if name.endswith(".py"):
            return f"open({str(self.out)!r}, 'a').write('{letter}')\n"
        line = f"echo {letter} >> '{self.out}'\n"
        return f"t:\n\t{line}" if name == "Makefile" else line if name == "package.json" else f"#!/bin/sh\n{line}"

    def write(self, name: str, letter: str, more: str = "") -> None:
        _put(self.root / name, self.text(name, letter) + more)

    def program(self, name: str, letter: str) -> None:
        _put(self.around / name, self.text(name, letter))

    def renamed(self, name: str, letter: str = "B") -> None:
        new = self.root / "new"
        self.write("new", letter)
        new.write_text(self.text(name, letter))
        new.replace(self.root / name)

    def link(self, name: str, to: str) -> None:
        new = self.root / "new"
        new.symlink_to(to)
        new.replace(self.root / name)

    def swap_folders(self, one: Path, other: Path) -> None:
        one.rename(one.with_name("aside"))
        other.rename(one)

    def another_root(self) -> None:
        copy = self.around / "copy"
        shutil.copytree(self.root, copy, symlinks=True)
        self.swap_folders(self.root, copy)


def _put(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@dataclass(frozen=True)
class Mutator:
    command: str
    change: Callable[[Ground], object]
    path: str | None = None
    same: bool = False
    """What runs after a second yes still writes `A`."""


WAYS = (
    "./x.sh",
    "bash x.sh",
    "sh ./x.sh",
    "sh -c ./x.sh",
    "true && ./x.sh",
    "env ./x.sh",
    "timeout 9 ./x.sh",
    ". ./x.sh",
)
"""To run a script."""
CHANGES: dict[str, Callable[[Ground], object]] = {
    "written": lambda g: g.write("x.sh", "B"),
    "replaced by rename": lambda g: g.renamed("x.sh"),
    "replaced by a link": lambda g: g.link("x.sh", "evil.sh"),
}
OTHER_MUTATORS: dict[str, Mutator] = {
    "the script's mode": Mutator("bash x.sh", lambda g: (g.root / "x.sh").chmod(0o700), same=True),
    "python's script": Mutator("python3 x.py", lambda g: g.write("x.py", "B")),
    "what a link leads to": Mutator("./linked.sh", lambda g: g.write("real.sh", "B")),
    "where a link leads": Mutator("./linked.sh", lambda g: g.link("linked.sh", "evil.sh")),
    "where a shell's linked script leads": Mutator("bash linked.sh", lambda g: g.link("linked.sh", "evil.sh")),
    "written by another name of it": Mutator("./hard.sh", lambda g: g.write("y.sh", "B")),
    "too big to be kept": Mutator("./big.sh", lambda g: g.write("big.sh", "B", more=_PADDING)),
    "the second of two": Mutator("./x.sh && ./y.sh", lambda g: g.write("y.sh", "B")),
    "the Makefile": Mutator("make t", lambda g: g.write("Makefile", "B")),
    "a Makefile that counts before": Mutator(
        "make t", lambda g: (g.root / "GNUmakefile").write_text(g.text("Makefile", "B"))
    ),
    "package.json": Mutator("npm run t", lambda g: g.write("package.json", "B")),
    "a program earlier in PATH": Mutator("tool", lambda g: g.program("first/tool", "B")),
    "the program itself": Mutator("tool", lambda g: g.program("second/tool", "B")),
    "a program of the workspace": Mutator("mine", lambda g: g.write("bin/mine", "B")),
    "the working folder": Mutator("./x.sh", lambda g: g.swap_folders(g.root / "sub", g.root / "other"), path="sub"),
    "the working folder, with the same in it": Mutator(
        "echo A >> ran",
        lambda g: (shutil.copytree(g.root / "sub", g.root / "twin"), g.swap_folders(g.root / "sub", g.root / "twin")),
        path="sub",
        same=True,
    ),
    "a link in the working folder's path": Mutator("./x.sh", lambda g: g.link("cur", "other"), path="cur"),
    "a link in the script's path": Mutator("cur/x.sh", lambda g: g.link("cur", "other")),
    "the workspace": Mutator("bash x.sh", lambda g: (g.another_root(), g.write("x.sh", "B"))),
}
MUTATORS = {f"{way}: {name}": Mutator(way, change) for way in WAYS for name, change in CHANGES.items()} | OTHER_MUTATORS


@contextmanager
def surroundings(ground: Ground) -> Generator[None]:
    """PATH as the commands of `MUTATORS` need it."""
    before = os.environ["PATH"]
    ground.lay_out()
    os.environ["PATH"] = os.pathsep.join(
        [str(ground.around / "first"), str(ground.around / "second"), str(ground.root / "bin"), before]
    )
    try:
        yield
    finally:
        os.environ["PATH"] = before


async def mutate(folder: Path, names: Sequence[str], rounds: int) -> Counter[str]:
    """Those mutators, each so often, at each of the moments in turn, in one session. Returns how the rounds ended."""
    plays = [(name, at) for name in names for at in range(rounds)]
    ground = Ground(folder)
    ends: Counter[str] = Counter()
    steps = [each for name, _ in plays for each in (step("", _run(MUTATORS[name])), step("Done."))]
    with surroundings(ground):
        async with scripted_session(folder, *steps) as d:
            for number, (name, at) in enumerate(plays):
                mutator, when, again = MUTATORS[name], WHEN[at % 3], at % 2 == 1
                ground.lay_out()
                end = await _mutated(d, ground, mutator, when, f"p{number}", again=again)
                ends[end] += 1
                assert when != "asked" or end != "not run", f"{name}: it was not asked about again"
                allowed = {"asked again, yes": ("A",) if mutator.same else ("B", "AB", "")}.get(end, ("",))
                assert ground.ran in allowed, f"{name}, {when}: {end}, and then {ground.ran!r} had run"
    return ends


def _run(mutator: Mutator) -> dict[str, Any]:
    where = {"path": mutator.path} if mutator.path else {}
    return call("run_shell_command", command=mutator.command, **where)


async def _mutated(
    d: ScriptedSession, ground: Ground, mutator: Mutator, when: When, prompt: str, *, again: bool
) -> str:
    def change() -> None:
        mutator.change(ground)

    await d.prompt("go", prompt)
    shown = (await d.until(lambda state: state.approvals)).approvals[0]
    if when == "asked":
        change()
    with _at_executing(d, change) if when == "executing" else contextlib.nullcontext():
        assert await d.answer("allow") == "resolved"
        if when == "answered":
            change()
        state = await d.until(lambda state: state.approvals or _is_over(state, prompt))
    if not state.approvals:
        await d.over(prompt)
        return "not run"
    asked = state.approvals[0]
    assert asked.digest != shown.digest, "another question has another digest"
    assert ground.ran == "", "it ran before it was asked about again"
    stale = await d.answer("allow", digest=shown.digest)
    assert stale == "stale", f"a yes to the first question counted for the second: {stale}"
    while (state := await d.until(lambda state: state.approvals or _is_over(state, prompt))).approvals:
        await d.answer("allow" if again else "reject")  # more than once when it was seen half written
    await d.over(prompt)
    return "asked again, yes" if again else "asked again, no"


def _is_over(state: SessionState, prompt: str) -> bool:
    return state.last_turn is not None and state.last_turn.turn_id == f"turn-{prompt}"


@contextmanager
def _at_executing(d: ScriptedSession, act: Callable[[], None]) -> Generator[None]:
    """Do that at the very moment the session says that a command runs."""
    send, done = d.client.send, False

    def seen(message: EventMessage) -> None:
        nonlocal done
        send(message)
        event = message.event
        runs = isinstance(event, ItemChanged) and isinstance(event.item, ToolCall) and event.item.state == "executing"
        if runs and not done:
            done = True
            act()

    d.client.send = seen  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        d.client.send = send  # pyright: ignore[reportAttributeAccessIssue]


@contextmanager
def _at_start(act: Callable[[], None]) -> Generator[None]:
    """Do that when a command has been looked at for the last time."""
    start = CommandLauncher._start  # pyright: ignore[reportPrivateUsage]

    async def watched(self: CommandLauncher, started: SandboxedCommand, mark: str, plan: CommandPlan) -> CommandProcess:
        act()
        return await start(self, started, mark, plan)

    CommandLauncher._start = watched  # pyright: ignore[reportPrivateUsage]
    try:
        yield
    finally:
        CommandLauncher._start = start  # pyright: ignore[reportPrivateUsage]


def _only(d: ScriptedSession, tier: Tier) -> None:
    d.sessions.services.sandbox._best = tier  # pyright: ignore[reportPrivateUsage]


# Answers ---------------------------------------------------------------------------------------------


def _altered(asked: Approval) -> dict[str, Any]:
    return {"decision": "allow", "digest": asked.digest[:-1] + ("0" if asked.digest[-1] != "0" else "1")}


ANSWERS: dict[str, tuple[Callable[[Approval, Approval], dict[str, Any]], str]] = {
    "an altered digest": (lambda asked, other: _altered(asked), "stale"),
    "no digest": (lambda asked, other: {"decision": "allow", "digest": None}, "stale"),
    "an empty digest": (lambda asked, other: {"decision": "allow", "digest": ""}, "stale"),
    "a digest in capitals": (lambda asked, other: {"decision": "allow", "digest": asked.digest.upper()}, "stale"),
    "the digest of another question": (lambda asked, other: {"decision": "allow", "digest": other.digest}, "stale"),
    "the digest with more behind it": (
        lambda asked, other: {"decision": "allow", "digest": asked.digest + "0"},
        "stale",
    ),
    **{
        f"the word {word!r}": (
            lambda asked, other, word=word: {"decision": word, "digest": asked.digest},
            "resolved",
        )
        for word in ("Allow", "ALLOW", "allow ", "yes", "approve", "true", "", "finish", "allow\0")
    },
    "a scope that was not offered": (
        lambda asked, other: {"decision": "allow", "digest": asked.digest, "scope": "user", "rule": "@run(*)"},
        "invalidRule",
    ),
    "another call": (
        lambda asked, other: {"decision": "allow", "digest": asked.digest, "tool_call_id": "call-of-nobody"},
        "approvalNotFound",
    ),
}
"""Of the question, and one about another command → an answer, and what comes of it: never that anything runs."""


async def answer(folder: Path, names: Sequence[str], rounds: int) -> Counter[str]:
    """Those answers to the question about a script, each so often; then the user says no, and says yes again."""
    plays = [name for name in names for _ in range(rounds)]
    ground = Ground(folder)
    ends: Counter[str] = Counter()
    both = [call("run_shell_command", command=f"eval ./{name}.sh", network=True) for name in "xy"]
    with surroundings(ground):
        async with scripted_session(folder, *[each for _ in plays for each in (step("", *both), step("Done."))]) as d:
            for number, name in enumerate(plays):
                make, expected = ANSWERS[name]
                await d.prompt("go", f"p{number}")
                state = await d.until(lambda state: len(state.approvals) == 2)
                asked, other = state.approvals
                found = await _say(d, {"tool_call_id": asked.tool_call_id, **make(asked, other)})
                assert found == expected, f"{name}: {found}"
                left = [each.tool_call_id for each in d.session.state.approvals]
                assert (asked.tool_call_id in left) == (expected != "resolved")
                for each in (asked, other):
                    await _say(d, {"tool_call_id": each.tool_call_id, "decision": "reject", "digest": None})
                late = {"tool_call_id": asked.tool_call_id, "decision": "allow", "digest": asked.digest}
                assert await _say(d, late) == "alreadyResolved"
                await d.over(f"p{number}")
                assert await _say(d, late) == "alreadyResolved"
                assert ground.ran == "", f"{name}: {ground.ran!r} ran"
                ends[found] += 1
    return ends


async def repeat(folder: Path, rounds: int) -> Counter[str]:
    """A yes said twice runs once, a yes after a cancel runs nothing, and what is granted is only what was offered."""
    ground = Ground(folder)
    ends: Counter[str] = Counter()
    run = call("run_shell_command", command="./x.sh")
    with surroundings(ground):
        # What is cancelled takes one step only.
        async with scripted_session(
            folder, *[each for at in range(rounds) for each in (step("", run), step("Done."))[: 2 - at % 2]]
        ) as d:
            for at in range(rounds):
                ground.lay_out()
                turn = await d.prompt("go", f"p{at}")
                asked = (await d.until(lambda state: state.approvals)).approvals[0]
                yes = {"tool_call_id": asked.tool_call_id, "decision": "allow", "digest": asked.digest}
                if at % 2:
                    await d.session.prompts.cancel(turn or "")
                    ends[f"after a cancel: {await _say(d, yes)}"] += 1
                    await d.over(f"p{at}", "cancelled")
                    assert await _say(d, yes) == "alreadyResolved"
                    assert ground.ran == ""
                else:
                    first = await asyncio.gather(*(_say(d, yes) for _ in range(5)))
                    assert sorted(first) == ["alreadyResolved"] * 4 + ["resolved"]
                    await d.over(f"p{at}")
                    assert await _say(d, yes) == "alreadyResolved"
                    assert ground.ran == "A", ground.ran
                    ends["five times yes: ran once"] += 1
    return ends


async def _say(d: ScriptedSession, answer: dict[str, Any]) -> str:
    try:
        params = ApprovalResolveParams(session_id="s", **answer)
        return (await d.session.resolve_approval(params, d.client)).status
    except AmanuError as error:
        return error.kind


# Races -----------------------------------------------------------------------------------------------

SWAPS: dict[str, tuple[str, str | None, Callable[[Ground, str], None]]] = {
    "written": ("./x.sh", None, lambda g, letter: _rewrite(g, letter)),
    "renamed": ("./x.sh", None, lambda g, letter: g.renamed("x.sh", letter)),
    "link": ("./linked.sh", None, lambda g, letter: g.link("linked.sh", "real.sh" if letter == "A" else "evil.sh")),
    "folder": ("./x.sh", "sub", lambda g, letter: _exchange(g, letter)),
}
"""The command, where, and how `A` becomes `B` and back, at once."""


def _rewrite(ground: Ground, letter: str) -> None:
    path = ground.root / "x.sh"
    with contextlib.suppress(OSError), path.open("r+b") as file:  # ETXTBSY: the kernel starts it just now
        os.pwrite(file.fileno(), letter.encode(), ground.text("x.sh", "A").index("echo A") + 5)


def _exchange(ground: Ground, letter: str) -> None:
    here, there = ground.root / "sub", ground.root / "other"
    if (ground.root / "sub" / "x.sh").read_text() != ground.text("x.sh", letter):
        here.rename(ground.root / "aside")
        there.rename(here)
        (ground.root / "aside").rename(there)


class Swapper:
    """A thread that swaps without end, or once, a moment after it was told."""

    def __init__(self, swap: Callable[[str], None]) -> None:
        self._swap = swap
        self._stop = threading.Event()
        self.swaps = 0

    @contextmanager
    def always(self) -> Generator[None]:
        def work() -> None:
            while not self._stop.is_set():
                for letter in "BA":
                    self._swap(letter)
                    self.swaps += 1
                    time.sleep(random.uniform(0, 0.004))

        self._stop.clear()
        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def once(self, after: float) -> threading.Thread:
        def work() -> None:
            time.sleep(after)
            self._swap("B")
            self.swaps += 1

        thread = threading.Thread(target=work)
        thread.start()
        return thread


async def race(folder: Path, name: str, tier: Tier, rounds: int) -> Counter[str]:
    """Yes to `A` only, while it is swapped: half of the rounds without end, half of them once, within 30 ms after the
    last look, while the command starts: what a swapper could do that knows all. Counts `approved ran`, `nothing ran`,
    and `stale, said` or `stale, unsaid`: `B` ran, and the result says that it may have, or does not."""
    command, path, swap = SWAPS[name]
    ground = Ground(folder)
    ends: Counter[str] = Counter()
    run = call("run_shell_command", command=command, **({"path": path} if path else {}))
    with surroundings(ground):
        async with scripted_session(
            folder, *[each for _ in range(rounds + 1) for each in (step("", run), step("Done."))]
        ) as d:
            _only(d, tier)
            ground.lay_out()
            for at in range(rounds):
                ground.lay_out()
                swapper = Swapper(lambda letter: swap(ground, letter))
                threads: list[threading.Thread] = []
                await d.prompt("go", f"p{at}")
                good = (await d.until(lambda state: state.approvals)).approvals[0].digest

                def aim(swapper: Swapper = swapper, threads: list[threading.Thread] = threads) -> None:
                    threads.append(swapper.once(random.uniform(0, 0.03)))

                with swapper.always() if at % 2 else _at_start(aim):
                    await _only_yes_to(d, good, f"p{at}")
                for thread in threads:
                    thread.join()
                await d.over(f"p{at}")
                said = d.session.state.items
                output = next(each.output for each in reversed(said) if isinstance(each, ToolCall))
                ran = ground.ran
                assert len(ran) <= 1, ran
                noted = "said" if SWAPPED in output else "unsaid"
                ends[{"": "nothing ran", "A": "approved ran", "B": f"stale, {noted}"}[ran]] += 1
    return ends


async def _only_yes_to(d: ScriptedSession, good: str, prompt: str) -> None:
    """Answer until the turn is over."""
    while True:
        state = await d.until(lambda state: state.approvals or _is_over(state, prompt))
        if not state.approvals:
            return
        digest = state.approvals[0].digest
        await d.answer("allow" if digest == good else "reject", digest=digest)


# Edits -----------------------------------------------------------------------------------------------

EDITS: dict[str, Callable[[Path], object]] = {
    "its file is written, elsewhere in it": lambda file: file.write_text(TWELVE.replace("line 6\n", "mine\n")),
    "its file is written, in the same place": lambda file: file.write_text(TWELVE.replace("line 2\n", "mine\n")),
    "its file is replaced by rename": lambda file: _moved_in(file, TWELVE.replace("line 6\n", "mine\n")),
    "its file is emptied": lambda file: file.write_text(""),
    "its file is gone": Path.unlink,
    "its file is a link to another": lambda file: _linked_to(file, TWELVE.replace("line 6\n", "mine\n")),
}
"""What happens to the file of a proposal between question and yes."""


def _moved_in(file: Path, text: str) -> None:
    new = file.with_name("new")
    new.write_text(text)
    new.replace(file)


def _linked_to(file: Path, text: str) -> None:
    other = file.with_name("other.txt")
    other.write_text(text)
    file.unlink()
    file.symlink_to(other.name)


async def edit(folder: Path, name: str, rounds: int) -> Counter[str]:
    """A yes to the whole of a proposal whose file becomes another before the yes, noticed or not yet: what is there
    then is the user's to the letter."""
    ends: Counter[str] = Counter()
    asked = step("", call("write_file", path="notes.txt", content=TWO_HUNKS))
    async with scripted_session(folder, *[each for _ in range(rounds) for each in (asked, step("Done."))]) as d:
        for at in range(rounds):
            for each in d.root.iterdir():
                each.unlink()
            d.file.write_text(TWELVE)
            theirs = await _changed_edit(d, EDITS[name], f"p{at}", ends, noticed=at % 2 == 1)
            assert _text(d.file) == theirs, f"{name}: a yes to what was shown made {_text(d.file)!r} of {theirs!r}"
    return ends


async def _changed_edit(
    d: ScriptedSession, change: Callable[[Path], object], prompt: str, ends: Counter[str], *, noticed: bool
) -> Any:
    """Returns what the change left in the file."""

    async def waits() -> SessionState:
        return await d.until(lambda state: state.approvals or _is_over(state, prompt))

    await d.prompt("go", prompt)
    shown = (await waits()).approvals[-1]
    change(d.file)
    theirs = _text(d.file)
    if noticed:
        await asyncio.sleep(0.3)
    status = await _say(d, {"tool_call_id": shown.tool_call_id, "decision": "allow", "digest": shown.digest})
    again = (await waits()).approvals
    assert all(each.digest != shown.digest for each in again), "another question has another digest"
    ends[f"{status}, {'asked again' if again else 'not done'}"] += 1
    while (state := await waits()).approvals:
        await _say(d, {"tool_call_id": state.approvals[0].tool_call_id, "decision": "reject", "digest": None})
    await d.over(prompt)
    return theirs


def _text(file: Path) -> str | None:
    return file.read_text() if file.exists() else None
