"""What kind of file bytes are, in words, by what they begin with."""

from typing import Any

from amanu.system.image_info import media_type

PDF = "application/pdf"


def shown_type(data: bytes) -> str:
    """The media type of what models can be shown, pictures and PDF documents; "" for anything else."""
    return media_type(data) or (PDF if data.startswith(b"%PDF-") else "")


def kind_of(data: bytes, name: str) -> str:
    """The kind in a few words. `name`: of the file, whose suffix decides where several kinds begin alike (ZIP)."""
    if kind := shown_type(data):
        return "PDF document" if kind == PDF else f"{kind.removeprefix('image/').upper()} picture"
    import puremagic  # its table is read when it is imported, and is seldom needed

    try:
        matches: Any = puremagic.magic_string(data[:_ENOUGH] + data[-_ENOUGH:], name)  # pyright: ignore[reportUnknownMemberType]
    except (puremagic.PureError, ValueError):
        return "unknown kind"
    return str(matches[0].name).strip() or "unknown kind"


_ENOUGH = 64 * 1024  # bytes of head and tail, which hold all that tells kinds apart
