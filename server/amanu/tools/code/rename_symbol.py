"""Rename a symbol in all files that use it, with edits computed by the editor's language servers."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from amanu.core.tool import CallContext, Preview, ToolError
from amanu.text.code_units import Encoding
from amanu.text.display import one_line
from amanu.text.span_edits import edited
from amanu.tools.code.find_definition import SymbolParams, symbol_place
from amanu.tools.code.renamed_names import Rename, WrongEdit
from amanu.tools.edits.base import EditParams, EditTool, FileChange
from amanu.tools.locations import resolve_paths
from amanu.workspace.editor_queries import ask
from amanu.workspace.overlay import CodePlace, Renaming
from amanu.workspace.range_edits import MisplacedEdit, placed_edits, with_line_ends_of
from amanu.workspace.text_file import FileText, sha256
from amanu_protocol.requests import RenamedFile

_LIBRARIES = frozenset({"node_modules", "site-packages"})
"""Folders of other people's code, wherever they are."""
_NAMED = 5  # files named in a refusal
_INSTEAD = "Nothing was changed. Find the uses with grep and change them with apply_patch."


class RenameSymbolParams(SymbolParams, EditParams):
    new_name: str = Field(min_length=1, description="The new name only.")


@dataclass(frozen=True)
class _ReadFile:
    """A file the rename changes, and what it says now."""

    renamed: RenamedFile
    base: FileText

    def changed_since(self, shown_texts: Collection[str]) -> bool:
        """Whether its text may be another than the edits were computed from; `shown_texts` are those that were open
        when the question was put."""
        if self.base.from_buffer and self.base.text not in shown_texts:
            return True
        if self.renamed.sha256 is None:
            return self.base.unsaved  # open in an editor that was not the one asked
        return self.renamed.sha256 != sha256(self.base.text.encode("utf-8", "surrogatepass"))


class RenameSymbol(EditTool[RenameSymbolParams]):
    name = "rename_symbol"
    description = (
        "Renames a symbol in all files that use it, with the editor's language servers; exact where text "
        "replacement is not. The user reviews it as one edit."
    )
    params = RenameSymbolParams
    waits = True  # the editor is asked about files as the earlier edits of the step leave them

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        symbol, new_name = arguments.get("symbol"), arguments.get("new_name")
        if isinstance(symbol, str) and isinstance(new_name, str):
            return one_line(f"Rename {symbol} to {new_name}")
        return "Rename a symbol"

    async def preview(self, params: RenameSymbolParams, call: CallContext) -> Preview:
        preview = await super().preview(params, call)
        count = len(preview.writes)
        title = self.title_of({"symbol": params.symbol, "new_name": params.new_name})
        return replace(preview, title=f"{title} in {count} file{'s' * (count != 1)}")

    async def find_changes(self, params: RenameSymbolParams, call: CallContext) -> Sequence[FileChange]:
        path = self._workspace.resolve(params.path)
        if params.new_name.split() != [params.new_name] or params.new_name == params.symbol:
            raise ToolError(
                f"{params.new_name!r} is not a new name for {params.symbol}. Give a different name, and only that."
            )
        for attempt in (1, 2):
            shown_texts = {
                buffer.text
                for open_path in self._workspace.overlay.paths()
                for _, buffer in self._workspace.overlay.documents(open_path)
            }
            answer = await self._ask(await self._place(path, params, call), params)
            files = await self._read(answer.files, call)
            changed = [file for file in files if file.changed_since(shown_texts)]
            if not changed:
                rename = Rename(params.symbol, params.new_name)
                return [await self._change(file, rename, answer.encoding) for file in files]
            if attempt == 2:
                raise ToolError(
                    f"{self.display_path(changed[0].base)} changed while the language server worked out the rename, or "
                    "another editor shows different text. Nothing was changed. Call again later."
                )
        raise AssertionError("the second attempt returns or raises")

    async def _place(self, path: Path, params: RenameSymbolParams, call: CallContext) -> CodePlace:
        name, read = self._workspace.display_path(path), [self._read_subject(path)]
        if call.denied(read):
            raise ToolError(f"A rule denies reading {name}, so nothing can be renamed from there.")
        try:
            return symbol_place(path, (await self._workspace.read(path)).text, params)
        except ToolError:
            if call.allowed(read):
                raise
            raise ToolError(  # the reason would quote what the user has not let the model read
                f"Line {params.line} of {name} does not contain {params.symbol!r}. Nothing was changed. Read the file "
                "first: that needs the user's approval."
            ) from None

    async def _ask(self, place: CodePlace, params: RenameSymbolParams) -> Renaming:
        overlay, new_name = self._workspace.overlay, params.new_name
        try:
            answer = await ask(overlay, "rename", [place.path], lambda language: language.rename(place, new_name))
        except ToolError as error:
            answer = await self._ask_checker(place, new_name, error)
        if not any(file.edits for file in answer.files):
            raise ToolError(f"The language server cannot rename {params.symbol} there. {_INSTEAD}")
        return answer

    async def _ask_checker(self, place: CodePlace, new_name: str, error: ToolError) -> Renaming:
        """The answer of a language server of the checks. Raises `error` when none runs."""
        rename = self._environment.rename
        answer = None if rename is None else await rename(place, new_name)
        if answer is None:
            raise error
        if answer.status != "success":
            raise ToolError(f"The language server that checks edits could not answer: {answer.message} {_INSTEAD}")
        return answer

    async def _read(self, renamed: Sequence[RenamedFile], call: CallContext) -> list[_ReadFile]:
        """The files that change, with their text. Raises `ToolError` when one of them is not ours to change: half a
        rename is worse than none."""
        inside = await resolve_paths(self._workspace, (file.path for file in renamed))
        foreign = [name for name, path in inside.items() if path is None or not _LIBRARIES.isdisjoint(path.parts)]
        if foreign:
            names = ", ".join(" ".join(name.split()) for name in foreign[:_NAMED])
            more = f" and {len(foreign) - _NAMED} more" if len(foreign) > _NAMED else ""
            raise ToolError(
                f"The rename would also change files outside the workspace or in libraries: {names}{more}. "
                "Nothing was changed. Choose a symbol that the workspace defines."
            )
        files: list[_ReadFile] = []
        for file in renamed:
            path = inside[file.path]
            assert path is not None, "refused above"
            if not file.edits and file.new_path is None:
                continue
            if self._proposals.pending(call, path) is not None:
                raise ToolError(
                    f"An earlier call in this step changes {self._workspace.display_path(path)} and is still "
                    "undecided. Nothing was changed. Rename in the next step."
                )
            files.append(_ReadFile(file, await self._workspace.read(path)))
        return files

    async def _change(self, file: _ReadFile, rename: Rename, encoding: Encoding) -> FileChange:
        new_text = await asyncio.to_thread(self._renamed_text, file, rename, encoding)
        return FileChange(
            str(file.base.path),
            partial(self._unless_changed, file.base.text, new_text),
            file.renamed.new_path,
            must_exist=True,
            part=self.display_path(file.base),
        )

    def _renamed_text(self, file: _ReadFile, rename: Rename, encoding: Encoding) -> str:
        text, path = file.base.text, self.display_path(file.base)
        try:
            edits = with_line_ends_of(text, placed_edits(text, file.renamed.edits, encoding))
            rename.check(text, edits)
        except MisplacedEdit as error:
            raise ToolError(
                f"The language server's edits of {path} {error}, so they are for other text. {_INSTEAD}"
            ) from None
        except WrongEdit as wrong:
            raise ToolError(
                f"The language server's edit of line {wrong.line} of {path} would replace something else than "
                f"{rename.symbol}: it is for other text, or counts otherwise than it says. {_INSTEAD}"
            ) from None
        return edited(text, edits)

    def _unless_changed(self, old_text: str, new_text: str, base: FileText) -> str:
        if base.text != old_text:
            raise ToolError("it changed while the rename was worked out. Call again.")
        return new_text
