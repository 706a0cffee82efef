"""The interpreter that warm processes are forked from: `python -P warm_interpreter.py SOCKET`, see `warm_process.py`.

It imports what Amanu's processes import, and has what each of them finds out once: of their code, and which sandbox
works here. It ends when nobody needs it, and removes the socket's folder.
"""

import asyncio
import atexit
import gc
import importlib
import io
import marshal
import os
import runpy
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from lsprotocol.converters import get_converter
from pydantic import BaseModel

import amanu
import amanu.daemon.relay
from amanu.config import SandboxSettings
from amanu.core.tool import Tool, tool_schema
from amanu.home import find_home
from amanu.sandbox import sandbox, self_test
from amanu.sandbox.self_test import InTier, Proof, Tier

STAND_IN = Path(__file__).with_name("warm_stand_in.py")
ALWAYS = ("anyio._backends._asyncio", "tree_sitter", "tree_sitter_bash", "rapidfuzz.process", "encodings.ascii")
"""Modules that they import later on, besides Amanu's own."""
WITH_KEY = {
    b"ANTHROPIC_API_KEY": ("anthropic.types", "httpx2"),
    b"GEMINI_API_KEY": ("google.genai.types", "httpx2"),
    b"OPENAI_API_KEY": ("httpx2",),
    b"OPENROUTER_API_KEY": ("httpx2",),
}
"""Modules that a process with such a variable needs as well: imported when the first of them comes."""
STARTUP = (b"PYTHON", b"LC_", b"LANG", b"COVERAGE_")
"""Beginnings of the variables that an interpreter obeys as it starts. Only PYTHONPATH can be made up for."""
_PATH = os.environ.get("PYTHONPATH", "")
USER = b"user"
"""The word of a client that needs the interpreter as long as the link is open."""
MOST_FILES = 64
APART = 400
"""The number from which on received files wait until their own is free."""


class Request(NamedTuple):
    """A process to be forked."""

    command: list[str]
    environment: dict[bytes, bytes]
    numbers: list[int]
    """The numbers that its files are to have."""
    umask: int
    leads: bool
    """It leads a session."""
    folder: int
    files: list[int]
    """Its working folder and its files, as they were received."""


class Interpreter:
    """Forks, and tells who asked how it ended; whoever no longer listens has killed the process."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._environment = _startup(os.environb)
        self._imported: set[str] = set()
        self._poll = select.poll()
        self._links: dict[int, tuple[socket.socket, int]] = {}
        """Number of a link → the link, and the process behind it."""
        self._handles: dict[int, int] = {}
        """Handle of a process → number of its link."""
        self._users: dict[int, socket.socket | None] = {0: None}
        """Clients that need the interpreter: who started it, by standard input, and those that said so on a link."""
        self._import([*_own_modules(), *ALWAYS])
        _compute()
        gc.freeze()

    def serve(self) -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{self._path}.new")
            listener.listen(64)
            self._poll.register(0, select.POLLIN)
            self._poll.register(listener, select.POLLIN)
            Path(f"{self._path}.new").rename(self._path)
            while self._users:
                for number, _ in self._poll.poll():
                    if number in self._users:
                        self._poll.unregister(number)
                        del self._users[number]
                    elif number == listener.fileno():
                        self._take(listener.accept()[0])
                    elif number in self._handles:
                        self._tell(number)
                    elif number in self._links:
                        self._hand_on(number)
        for _, pid in self._links.values():
            os.kill(pid, signal.SIGKILL)

    def _import(self, modules: Sequence[str]) -> None:
        if new := [name for name in modules if name not in self._imported]:
            gc.disable()
            for name in new:
                importlib.import_module(name)
            gc.freeze()  # no process looks through these, and so none copies them
            gc.enable()
            self._imported.update(new)

    def _take(self, link: socket.socket) -> None:
        header, files, _, _ = socket.recv_fds(link, 4, MOST_FILES)
        if header == USER:
            self._users[link.fileno()] = link
            self._poll.register(link, select.POLLIN)
            return
        try:
            request = _request(link, int.from_bytes(header, "big"), files)
        except (OSError, EOFError, ValueError):  # killed while it asked
            link.close()
            return
        try:
            if request.command[1] != "-P" or _startup(request.environment) != self._environment:
                link.send(b"0")
                link.close()
                return
            for name, modules in WITH_KEY.items():
                if name in request.environment:
                    self._import(modules)
            assert threading.active_count() == 1
            if (pid := os.fork()) == 0:
                self._become(request)
            handle = os.pidfd_open(pid)
            self._links[link.fileno()] = (link, pid)
            self._handles[handle] = link.fileno()
            self._poll.register(link, select.POLLIN)
            self._poll.register(handle, select.POLLIN)
            link.send(b"1")
        finally:
            for number in (request.folder, *request.files):
                os.close(number)

    def _hand_on(self, number: int) -> None:
        """A signal, or the end of who asked."""
        link, pid = self._links[number]
        try:
            signals = link.recv(16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return  # it was the link that had this number before
        except ConnectionError:
            signals = b""
        if not signals:
            self._poll.unregister(number)
        for each in signals or (signal.SIGKILL,):
            os.kill(pid, each)  # not waited for yet: the number is still its own

    def _tell(self, handle: int) -> None:
        link, pid = self._links.pop(self._handles.pop(handle))
        _, status = os.waitpid(pid, 0)
        self._poll.unregister(handle)
        os.close(handle)
        try:
            self._poll.unregister(link)
            link.send(status.to_bytes(4, "big"))
        except (KeyError, ConnectionError):
            pass  # killed
        link.close()

    def _become(self, request: Request) -> NoReturn:
        """In the new process: run the command as if the interpreter had just started for it."""
        code = 255
        try:
            _take_over(request)
            sys.orig_argv = request.command
            code = _run(request.command[2:], self._path)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)


def _own_modules() -> list[str]:
    """All of Amanu."""
    root = Path(amanu.__file__).parent
    paths = [path.relative_to(root.parent).with_suffix("") for path in root.rglob("*.py")]
    return [
        ".".join(path.parts)
        for path in paths
        if path.stem not in ("__init__", "__main__") and "sample" not in path.parts
    ]


def _compute() -> None:
    """Compute ahead of each process: validators, the schemas of tools, LSP's converter."""
    for model in _below(BaseModel):
        if model.__module__.startswith("amanu"):
            model.model_rebuild()
    for tool in _below(Tool):
        if "params" in vars(tool):
            tool_schema(tool.params)
    get_converter()
    _prove_once()


def _prove_once() -> None:
    """Find out here, and not in each process, what the sandbox can do on this machine."""
    found: list[tuple[dict[Tier, str], Proof]] = []

    async def prove(candidates: Mapping[Tier, str], in_tier: InTier) -> Proof:
        for known, proof in found:
            if known == candidates:
                return proof
        found.append((dict(candidates), await self_test.prove(candidates, in_tier)))
        return found[-1][1]

    sandbox.prove = prove
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(sandbox.Sandbox(SandboxSettings(), find_home({"AMANU_HOME": f"{folder}/home"}).make()).proved())
    sandbox._proofs.clear()  # pyright: ignore[reportPrivateUsage]


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def _request(link: socket.socket, size: int, files: Sequence[int]) -> Request:
    folder, *rest = files
    body = b""
    while len(body) < size:
        if not (more := link.recv(size - len(body))):
            raise EOFError
        body += more
    command, environment, numbers, umask, leads = marshal.loads(body)
    return Request(command, environment, numbers, umask, leads, folder, rest)


def _startup(environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    told = {name: value for name, value in environment.items() if name.startswith(STARTUP)}
    told.pop(b"PYTHONPATH", None)
    return told


def _take_over(request: Request) -> None:
    """Folder, files and the rest of what is inherited, and nothing of the interpreter's own."""
    if request.leads:
        os.setsid()
    os.umask(request.umask)
    os.fchdir(request.folder)
    apart = {at: number for at, number in enumerate(request.numbers, APART)}
    for received, at in zip(request.files, apart, strict=True):
        os.dup2(received, at)
    os.closerange(0, APART)
    for at, number in apart.items():
        os.dup2(at, number)
    os.closerange(APART, APART + len(apart))
    os.environ.clear()
    os.environb.update(request.environment)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        setattr(sys, name, _stream(number, getattr(sys, name)) if number in request.numbers else None)
        setattr(sys, f"__{name}__", getattr(sys, name))


def _customize() -> None:
    """Obey PYTHONPATH."""
    ours = _PATH.split(os.pathsep)
    sys.path[:0] = folders = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each not in ours]
    sys.modules.pop("sitecustomize", None)
    if any((Path(folder) / "sitecustomize.py").exists() for folder in folders):
        importlib.import_module("sitecustomize")


def _stream(number: int, like: Any) -> io.TextIOWrapper:
    """A standard stream like those that the interpreter makes at its start."""
    raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
    buffer = io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
    lines = number == 2 or raw.isatty()
    return io.TextIOWrapper(buffer, encoding=like.encoding, errors=like.errors, line_buffering=lines)


def _run(arguments: Sequence[str], path: str) -> int:
    """The exit code."""
    relay = amanu.daemon.relay
    command = (sys.executable, "-I", "-S", str(STAND_IN), path, *relay.DAEMON)
    relay.DAEMON = command
    relay.main.__defaults__ = (command,)
    code: Any = 0
    try:
        _customize()
        if arguments[0] == "-m":
            sys.argv = ["-m", *arguments[2:]]
            for name in (arguments[1], f"{arguments[1]}.__main__"):
                if name != "amanu":
                    sys.modules.pop(name, None)  # what is run is another one
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = list(arguments)
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as left:
        code = left.code
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # pyright: ignore
    atexit._run_exitfuncs()  # pyright: ignore
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            code = code or 120
    return code or 0


if __name__ == "__main__":
    try:
        Interpreter(sys.argv[1]).serve()
    finally:
        shutil.rmtree(Path(sys.argv[1]).parent, ignore_errors=True)  # who started us may be gone
