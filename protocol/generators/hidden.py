"""The list of hidden characters for the fronts that are not written in Python."""

from amanu_protocol.hidden import HIDDEN

_FROM = "Written from protocol/amanu_protocol/hidden.py by protocol/generate.py. Do not edit."


def typescript() -> str:
    ranges = "".join(f"\\u{{{first:x}}}-\\u{{{last:x}}}" for first, last in HIDDEN)
    lines = [
        f"// {_FROM}",
        "",
        "/** Characters that are not seen, or make others stand in another order. */",
        "// prettier-ignore",
        f"export const HIDDEN = /[{ranges}]/gu;",
    ]
    return "\n".join(lines) + "\n"


def lua() -> str:
    lines = [
        f"-- {_FROM}",
        "",
        "---@type [integer, integer][] First and last code point of characters that are not seen, or make others stand",
        "---in another order.",
        "return {",
        *(f"  {{ 0x{first:x}, 0x{last:x} }}," for first, last in HIDDEN),
        "}",
    ]
    return "\n".join(lines) + "\n"
