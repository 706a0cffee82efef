"""The named styles of the terminal: each is readable on its theme's backgrounds, as 16 colours usually are."""

import pytest

from amanu.cli.code_colours import STYLES
from amanu.cli.styles import COLOURS, LOOKS, NUMBERS, Theme, rich_style, sgr, toolkit_style

READABLE = 2.8
"""WCAG asks for 3 of large letters and signs; Solarized's cyan on its own light background has 2.9."""
# Background; black, red, green, yellow, blue, magenta, cyan, white, the same bright. xterm's own are not among the
# light ones: green on white has 2.2 there, and no colour would be left for what is good.
PALETTES: dict[Theme, dict[str, str]] = {
    "dark": {
        "xterm": "000000  000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5"
        "         7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff",
        "GNOME": "1e1e1e  171421 c01c28 26a269 a2734c 12488b a347ba 2aa1b3 d0cfcc"
        "         5e5c64 f66151 33da7a e9ad0c 2a7bde c061cb 33c7de ffffff",
        "macOS": "000000  000000 990000 00a600 999900 0000b2 b200b2 00a6b2 bfbfbf"
        "         666666 e60000 00d900 e6e600 0000ff e600e6 00e6e6 e6e6e6",
        "Windows": "0c0c0c  0c0c0c c50f1f 13a10e c19c00 0037da 881798 3a96dd cccccc"
        "           767676 e74856 16c60c f9f1a5 3b78ff b4009e 61d6d6 f2f2f2",
        "VS Code": "1e1e1e  000000 cd3131 0dbc79 e5e510 2472c8 bc3fbc 11a8cd e5e5e5"
        "           666666 f14c4c 23d18b f5f543 3b8eea d670d6 29b8db e5e5e5",
        "Solarized": "002b36  073642 dc322f 859900 b58900 268bd2 d33682 2aa198 eee8d5"
        "             002b36 cb4b16 586e75 657b83 839496 6c71c4 93a1a1 fdf6e3",
    },
    "light": {
        "GNOME": "ffffff  171421 c01c28 26a269 a2734c 12488b a347ba 2aa1b3 d0cfcc"
        "         5e5c64 f66151 33da7a e9ad0c 2a7bde c061cb 33c7de ffffff",
        "macOS": "ffffff  000000 990000 00a600 999900 0000b2 b200b2 00a6b2 bfbfbf"
        "         666666 e60000 00d900 e6e600 0000ff e600e6 00e6e6 e6e6e6",
        "Windows": "fafafa  383a42 e45649 50a14f c18301 0184bc a626a4 0997b3 fafafa"
        "           4f525d df6c75 98c379 e4c07a 61afef c577dd 56b5c1 ffffff",
        "VS Code": "ffffff  000000 cd3131 107c10 949800 0451a5 bc05bc 0598bc 555555"
        "           666666 cd3131 14ce14 b5ba00 0451a5 bc05bc 0598bc a5a5a5",
        "Solarized": "fdf6e3  073642 dc322f 859900 b58900 268bd2 d33682 2aa198 eee8d5"
        "             002b36 cb4b16 586e75 657b83 839496 6c71c4 93a1a1 fdf6e3",
    },
}
SEEN_ON: dict[Theme, list[Theme]] = {"dark": ["dark"], "light": ["light"], "neutral": ["dark", "light"]}
PAIRS = [
    (theme, background, palette)
    for theme, backgrounds in SEEN_ON.items()
    for background in backgrounds
    for palette in PALETTES[background]
]


@pytest.mark.parametrize(("theme", "background", "palette"), PAIRS)
def test_every_style_is_readable(theme: Theme, background: Theme, palette: str) -> None:
    paper, *colours = PALETTES[background][palette].split()
    for style, look in LOOKS.items():
        if look.hue is not None:
            found = contrast(colours[NUMBERS[COLOURS[theme][look.hue]]], paper)
            assert found >= READABLE, f"{style} has {found:.1f}"


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, "contrast ratio"."""
    darker, lighter = sorted(map(luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(
    ("style", "theme", "code", "rich", "toolkit"),
    [
        ("", "dark", "", "none", "nodim"),
        ("dim", "light", "2", "dim", "dim"),
        ("red", "dark", "91", "bright_red", "ansibrightred nodim"),
        ("red", "light", "31", "red", "ansired nodim"),
        ("yellow", "light", "35", "magenta", "ansimagenta nodim"),
        ("cyan", "light", "34", "blue", "ansiblue nodim"),
        ("heading", "neutral", "1;36", "bold cyan", "bold ansicyan nodim"),
        ("heading", "plain", "1", "bold", "bold nodim"),
        ("red", "plain", "", "none", "nodim"),
        ("markdown.h2", "dark", "4;95", "underline bright_magenta", "underline ansibrightmagenta nodim"),
    ],
)
def test_a_style_in_the_words_of_each_library(style: str, theme: Theme, code: str, rich: str, toolkit: str) -> None:
    assert (sgr(style, theme), rich_style(style, theme), toolkit_style(style, theme)) == (code, rich, toolkit)


def test_what_is_bad_and_what_is_good_never_look_the_same() -> None:
    for theme in SEEN_ON:
        assert len({COLOURS[theme]["red"], COLOURS[theme]["green"], COLOURS[theme]["yellow"]}) == 3


def test_code_has_no_style_of_its_own() -> None:
    assert set(STYLES.values()) <= set(LOOKS)
