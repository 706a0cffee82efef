"""Looks up what a prompt mentions, other than files, with the session's tools: what needs approval stays out."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from amanu.context.attachments import Content
from amanu.context.mentions import Mention
from amanu.core.tool import Preview, Subject, ToolError
from amanu.session.core import SessionCore
from amanu.session.unasked_calls import UnaskedCalls
from amanu.tools.files.read_file import ReadFile
from amanu.tools.mcp.resources import ReadMcpResource
from amanu.workspace.diagnostics import format_finding
from amanu_protocol.items import FileAttachment, Finding

SECONDS = 10.0
"""For one look-up: the turn, and with it whoever would stop it, waits until all are done."""
MAX_FILES = 20
"""Files that checkers look at where no editor can say."""
MAX_FINDINGS = 100

Findings = Callable[[Path], Awaitable[Sequence[Finding]]]
"""What checkers find in a file as it is. Must not raise."""

NO_TERMINAL = "no terminal output came with the prompt; paste it instead."
NOT_READ = "(The user mentioned this address; it was not fetched.)"
DIFF = "git --no-pager diff --no-ext-diff --no-textconv HEAD"


class MentionLookup:
    """Finds what one prompt mentions. `find` has Amanu's checkers look at a file, `read_resource` reads one of an MCP
    server."""

    def __init__(
        self,
        core: SessionCore,
        calls: UnaskedCalls,
        find: Findings,
        read_resource: Callable[[str, str], Awaitable[str]],
    ) -> None:
        self._workspace = core.workspace
        self._state = core.state
        self._calls = calls
        self._find = find
        self._read_resource = read_resource

    async def __call__(self, mention: Mention) -> str:
        """See `context.attachments.LookUp`."""
        try:
            async with asyncio.timeout(SECONDS):
                return await self._text_of(mention)
        except TimeoutError:
            raise ToolError(f"it took more than {SECONDS:g} seconds.") from None

    async def read(self, file: FileAttachment, reading: Callable[[], Awaitable[Content]]) -> Content:
        """See `context.attachments.LookUp`."""
        path = self._workspace.resolve(file.path)
        relative = self._workspace.relative(path)
        arguments: dict[str, JsonValue] = {"path": relative}
        if file.lines is not None:
            arguments |= {"start_line": file.lines.first, "end_line": file.lines.last}
        subject = Subject(ReadFile.name, ReadFile.effect, relative)
        preview = Preview(f"Read {relative}", subject, str(path), reads=frozenset([str(path)]))
        return await self._calls.read(ReadFile.name, arguments, preview, reading)

    async def _resource(self, server: str, uri: str) -> str:
        name = ReadMcpResource.name
        subject = Subject(name, ReadMcpResource.effect, f"{server}:{uri}", server=server, read_only=True)

        async def reading() -> Content:
            return Content(await self._read_resource(server, uri))

        preview = Preview(f"Read {server}:{uri}", subject, uri)
        return (await self._calls.read(name, {"server": server, "uri": uri}, preview, reading)).text

    async def _text_of(self, mention: Mention) -> str:
        match mention.kind:
            case "folder":
                return await self._run("list_directory", path=mention.text)
            case "symbol":
                return await self._symbol(mention.text)
            case "problems":
                return await self._problems()
            case "diff":
                return await self._diff()
            case "terminal":
                raise ToolError(NO_TERMINAL)
            case "url":
                return NOT_READ
            case "resource":
                return await self._resource(*mention.text.split(":", 1))
            case "path":
                raise AssertionError("files are read elsewhere")

    async def _symbol(self, name: str) -> str:
        """Where it is defined: as an editor says, else the lines that look like its definition."""
        last = re.split(r"\.|::|#", name)[-1]
        try:
            symbols = await self._run("list_symbols", query=last)
            lines = [line for line in symbols.splitlines() if re.search(rf"\b{re.escape(last)}\b", line)]
        except ToolError:
            lines = []
        if lines:
            return "\n".join(lines)
        matches = await self._run("grep", pattern=definition_pattern(re.escape(last)), context=2)
        if last not in matches.partition("\n")[2]:
            raise ToolError(f"nothing that looks like a definition of {last} was found.")
        return matches

    async def _diff(self) -> str:
        """What has changed in the working tree; of several roots, in each. Raises `ToolError` when none can say."""
        roots = self._workspace.roots
        if len(roots) == 1:
            return await self._run("run_shell_command", command=DIFF)
        diffs: list[str] = []
        failure: ToolError | None = None
        for root in roots:
            try:
                diffs.append(f"{root}:\n{await self._run('run_shell_command', command=DIFF, path=str(root))}")
            except ToolError as error:
                failure = error
        if not diffs and failure is not None:
            raise failure
        return "\n\n".join(diffs)

    async def _problems(self) -> str:
        try:
            return await self._run("get_diagnostics")
        except ToolError:
            return await self._checker_findings()

    async def _checker_findings(self) -> str:
        """What checkers find in the files that the session changed, and those with unsaved text."""
        changed = [Path(file.path) for proposal in reversed(self._state.proposals) for file in proposal.files]
        unsaved = [file.path for file in await self._workspace.unsaved()]
        is_plan = self._workspace.guard.is_plan
        paths = [path for path in dict.fromkeys([*unsaved, *changed]) if not is_plan(path)][:MAX_FILES]
        lines: list[str] = []
        for path in paths:
            name = self._workspace.display_path(path)
            lines += [f"{name}:{format_finding(finding)}" for finding in await self._find(path)]
        if not paths:
            raise ToolError("no editor reports problems, and this session has changed no file that could be checked.")
        note = [f"[{len(lines) - MAX_FINDINGS} more]"] if len(lines) > MAX_FINDINGS else []
        names = ", ".join(map(self._workspace.display_path, paths))
        return "\n".join([f"Checked: {names}", *lines[:MAX_FINDINGS], *note] if lines else [f"No problems in {names}."])

    async def _run(self, name: str, **arguments: Any) -> str:
        """The tool's result for the model. Raises `ToolError`, also when the call would need approval."""
        result = (await self._calls.run(name, **arguments)).result
        if result.is_error:
            raise ToolError(" ".join(result.text.split())[:300])
        return result.text


def definition_pattern(name: str) -> str:
    """A regular expression for lines that look like a definition in one of the usual languages; `name` is one, too."""
    words = "def|class|function|func|fn|struct|interface|type|enum|trait|module|macro_rules!|const|let|var|val|static"
    return rf"^\s*(\w+ )*({words})\*? (\([^)]*\) )?{name}\b|^\s*{name} = "
