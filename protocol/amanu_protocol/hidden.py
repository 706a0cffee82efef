"""Characters that are not seen, or make others stand in another order: the one list of all fronts.

Written from here into TypeScript and Lua (`protocol/generate.py`). Text a user decides on shows each as its code
point. Sources: Unicode 16, `Default_Ignorable_Code_Point` and `Bidi_Control`; controls but tab and line feed; line ends
only some programs see; the blank Hangul letters; halves of a character.
"""

HIDDEN: tuple[tuple[int, int], ...] = (
    (0x00, 0x08),
    (0x0B, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x34F, 0x34F),
    (0x61C, 0x61C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF9, 0xFFFB),
    (0xD800, 0xDFFF),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
"""First and last code point of each range."""


def pattern() -> str:
    """A class of a regular expression that fits one of them."""
    return "[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in HIDDEN) + "]"
