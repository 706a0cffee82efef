"""The output of a command, as a terminal would show its lines."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.tools.shell.terminal_lines import TerminalLines

TQDM = ["  0%|          | 0/9 [00:00<?, ?it/s]", " 33%|###       | 3/9 [00:01<00:02, 3.0it/s]"]
GIT = ["Receiving objects:  10% (1/10)", "Receiving objects: 100% (10/10), 1.2 MiB | 1.0 MiB/s, done."]


def shown(text: str, size: int = 1 << 20) -> str:
    """The text after it came in pieces of that size."""
    lines = TerminalLines()
    return "".join(lines.add(text[at : at + size]) for at in range(0, len(text), size)) + lines.finish()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\n", "plain\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\r\r\nb\r\r\n", "a\nb\n"),
        ("\x1b[1;31mred\x1b[m\x1b]8;;http://x\x1b\\link\x1b]8;;\x07\x08", "redlink"),
        ("\x1bPq#0\x1b\\x\x1b(B\x1b7y\x1b8", "xy"),
        ("tab\tstays", "tab\tstays"),
        ("cut \x1b[3", "cut "),
        # overwritten
        ("1%\r2%\r3%\ndone\r\n", "3%\ndone\n"),
        ("50%\r", "50%"),
        ("abc\rX\n", "Xbc\n"),
        ("abc\r\x1b[KX\n", "X\n"),
        ("abc\x1b[2K\x1b[1GX\n", "X\n"),
        ("abcdef\x1b[3DX\n", "abcXef\n"),
        ("abcdef\x1b[3D\x1b[1K\n", "    ef\n"),
        ("a\x1b[3Cb\n", "a   b\n"),
        ("N\bNA\bAM\bME\bE  _\bx\n", "NAME  x\n"),
        ("Working |\b/\b-\b \b\bdone\n", "Workingdone\n"),
        ("Downloading\r           \rDone\n", "Done\n"),
        ("Loading.\rLoading..\rLoading...\n", "Loading...\n"),
        ("".join(f"\rfetched {at} of 20" for at in range(21)), "fetched 20 of 20"),
        ("\r".join(TQDM), TQDM[-1]),
        ("Cloning\n" + "\r".join(GIT) + "\n", f"Cloning\n{GIT[-1]}\n"),
        ("\r" + "\r".join(GIT), GIT[-1]),
        ("".join(f"\r{at}" for at in range(10)) + "\n", "9\n"),
        ("\r1\r2\r3", "3"),
        ("\rResolving\rFetching x\rDone      \n", "Done\n"),
        ("Rebasing (1/1)\rSuccessfully rebased.\n", "Successfully rebased.\n"),
        ("first\rsecond\nthird\n", "second\nthird\n"),
        ("\x1b[?25lWo\rWork\rWorking\x1b[?25h\n", "Working\n"),
        # CR as a line end
        ("one\rtwo\rthree", "one\ntwo\nthree"),
        ("one\rtwo\r\rthree\r", "one\ntwo\n\nthree\n"),
        ("one\rtwo\rthree\n", "one\ntwo\nthree\n"),
        ("line 1\rline 2\r", "line 1\nline 2\n"),
        ("import os\rimport sys\r\rdef f():\r    pass\r", "import os\nimport sys\n\ndef f():\n    pass\n"),
        ("id,n\r1,10\r2,20\r", "id,n\n1,10\n2,20\n"),
        ("$ cat old.txt\nred\rgreen\rblue\rdone\n", "$ cat old.txt\nred\ngreen\nblue\ndone\n"),
        ("a" * 1500 + "\rb\n", "a" * 1500 + "\nb\n"),
        # NUL as a line end
        ("a\0b\0", "a\nb\n"),
        ("\0\0FAILED x\n", "FAILED x\n"),
        ("before\0after\n", "before\nafter\n"),
        ("A=1\0B=x y\0\0C=\n", "A=1\nB=x y\nC=\n"),
    ],
)
def test_shown(text: str, expected: str) -> None:
    assert shown(text) == shown(text, 1) == shown(text, 7) == expected


PIECES = st.sampled_from(
    [
        *"012 .中",
        "\r",
        "\b",
        "\n",
        "\x1b[K",
        "\x1b[1K",
        "\x1b[2K",
        "\x1b[D",
        "\x1b[2D",
        "\x1b[3C",
        "\x1b[2G",
        "\x1b[31m",
    ]
)


def terminal(text: str) -> str:
    """A terminal with lines without end, character by character."""
    screen, column = [dict[int, str]()], 0
    for count, command, char in re.findall(r"\x1b\[(\d*)([A-Za-z])|([^\x1b])", text):
        line = screen[-1]
        match char or command:
            case "\n":
                screen.append({})
                column = 0
            case "\r":
                column = 0
            case "\b":
                column = max(0, column - 1)
            case "D":
                column = max(0, column - int(count or 1))
            case "C":
                column += int(count or 1)
            case "G":
                column = int(count or 1) - 1
            case "K":
                kept = {"": range(column), "1": range(column + 1, 10_000), "2": range(0)}[count]
                screen[-1] = {at: line[at] for at in line if at in kept}
            case "m":
                pass
            case _:
                line[column] = char
                column += 1
    texts = ("".join(line.get(at, " ") for at in range(max(line, default=-1) + 1)) for line in screen)
    return "\n".join(each.rstrip(" ") for each in texts)


@given(st.lists(PIECES, max_size=60), st.integers(1, 9))
def test_it_is_what_a_terminal_shows(pieces: list[str], size: int) -> None:
    text = "".join(pieces) + "\n"
    assert re.sub(r" +$", "", shown(text, size), flags=re.M) == terminal(text)


@given(st.text(st.sampled_from("ab1%/ \r\n\b\0\x1b[]K2;\x07\\P(B\x9b"), max_size=200), st.integers(1, 9))
def test_it_does_not_depend_on_the_pieces(text: str, size: int) -> None:
    assert shown(text, size) == shown(text)


@pytest.mark.parametrize(
    "piece",
    [
        "\x1b]",
        "0;",
        "x\r",
        "ab\rc\r",
        "a",
        "\b",
        "N\bN",
        "a\x1b[2K",
        "\x1b[1K\x1b[999Cx",
        "\x1bP",
        "\0",
        "10%\r",
        "a\r\n",
    ],
)
def test_it_is_linear_and_keeps_only_the_last_line(piece: str) -> None:
    lines, started, kept = TerminalLines(), time.process_time(), 0
    for _ in range(16):
        lines.add(piece * (32_768 // len(piece)))
        kept = max(kept, *(len(value) for value in vars(lines).values() if isinstance(value, list | str)))
    assert time.process_time() - started < 5 and kept <= 40_000
