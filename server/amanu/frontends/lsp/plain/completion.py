"""Completion of mentions where the user of a plain client writes: in the chat document."""

from lsprotocol import types

from amanu.frontends.lsp.document_text import DocumentText, Position
from amanu.session.session import Session
from amanu.text.code_units import Encoding
from amanu.text.display import one_line


async def complete(
    session: Session, text: str, place: types.Position, encoding: Encoding
) -> types.CompletionList | None:
    """What the mention before that place of the document may become."""
    document = DocumentText(text, encoding)
    end = document.offset(Position(place.line, place.character))
    begins = document.offset(Position(place.line, 0))
    result = await session.mentions.complete(text[begins:end])
    if not result.typed:
        return None
    start = document.position(end - len(result.typed))
    replaced = types.Range(types.Position(start.line, start.character), place)
    items = [
        types.CompletionItem(
            label=one_line(item.text),
            detail=one_line(item.detail),
            kind=types.CompletionItemKind.Reference,
            filter_text=result.typed,  # the daemon has filtered
            sort_text=f"{at:03}",
            text_edit=types.TextEdit(replaced, item.text),
        )
        for at, item in enumerate(result.items)
    ]
    return types.CompletionList(is_incomplete=True, items=items)
