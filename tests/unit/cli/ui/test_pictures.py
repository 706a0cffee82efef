"""Pictures in the composer: from the clipboard, and from pasted paths."""

import asyncio
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from amanu.cli.ui import clipboard
from amanu.cli.ui.clipboard import MACOS, WAYLAND, WINDOWS, X11, Reader, clipboard_picture, readers
from amanu.cli.ui.context import PromptContext
from amanu.cli.ui.pictures import MOST_BYTES, MOST_KEPT, Pictures, pasted_paths, read_picture
from amanu.cli.ui.terminal import Terminal
from amanu.context.images import MAX_BYTES
from amanu_protocol.errors import AmanuError
from support.sample_images import base64_of, gif, jpeg, png, webp


@pytest.mark.parametrize(
    ("pasted", "expected"),
    [
        ("/a/b.png", ["/a/b.png"]),
        ("/a/b.PNG ", ["/a/b.PNG"]),
        ("'/a/my picture.jpeg'", ["/a/my picture.jpeg"]),
        ('"/a/my picture.gif"', ["/a/my picture.gif"]),
        (r"/a/my\ picture\'s.webp", ["/a/my picture's.webp"]),
        ("'/a/it'\\''s.png'", ["/a/it's.png"]),
        ("/a/1.png '/a/2 3.jpg'", ["/a/1.png", "/a/2 3.jpg"]),
        ("file:///a/my%20picture.png", ["/a/my picture.png"]),
        ("file://elsewhere/a.png", []),
        ("~/a.png", ["~/a.png"]),
        ("a.png", []),  # relative to what?
        ("see /a/b.png", []),
        ("/a/b.txt", []),
        ("/a/1.png\n/a/2.png", []),
        ("'/a/b.png", []),
        ("", []),
        ("/" + "x" * 5000 + ".png", []),
    ],
)
def test_a_paste_that_may_be_pictures(pasted: str, expected: list[str]) -> None:
    assert list(pasted_paths(pasted)) == [Path(each).expanduser() for each in expected]


def test_the_words_of_pictures_bring_them_along() -> None:
    pictures = Pictures()
    words = [pictures.add(f"{number}.x", data) for number, data in enumerate([png(), jpeg(), gif(), webp()], 1)]
    assert words == ["[picture 1]", "[picture 2]", "[picture 3]", "[picture 4]"]
    found = pictures.named("[picture 3] and [picture 2], [picture 3] again, [picture 9], [picture x]")
    assert [(each.name, each.media_type) for each in found] == [("3.x", "image/gif"), ("2.x", "image/jpeg")]
    assert found[0].data == base64_of(gif())
    assert pictures.named("none") == []


def test_the_oldest_pictures_go() -> None:
    pictures = Pictures()
    words = [pictures.add("a.png", png()) for _ in range(MOST_KEPT + 2)]
    assert [bool(pictures.named(word)) for word in words] == [False] * 2 + [True] * MOST_KEPT


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"text", "no whole PNG"),
        (png()[:-9], "no whole PNG"),
        (png(bytes_at_least=MOST_BYTES + 1), "at most 3.75 MiB"),
    ],
)
def test_what_no_model_takes_is_refused(data: bytes, says: str) -> None:
    assert MOST_BYTES == MAX_BYTES
    pictures = Pictures()
    with pytest.raises(AmanuError, match=says):
        pictures.add("a.png", data)
    assert pictures.add("b.png", png()) == "[picture 1]"


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}, [WAYLAND, X11]),
        ("linux", {"DISPLAY": ":0"}, [X11]),
        ("linux", {"WSL_DISTRO_NAME": "d", "DISPLAY": ":0"}, [WINDOWS, X11]),
        ("linux", {}, []),
        ("darwin", {"DISPLAY": ":0"}, list(MACOS)),
    ],
)
def test_the_program_that_knows_the_clipboard(
    platform: str, environ: dict[str, str], expected: Sequence[Reader]
) -> None:
    assert list(readers(platform, environ)) == expected


HEX, BASE64 = png().hex().upper(), base64_of(png())


@pytest.mark.parametrize(
    ("platform", "variable", "programs", "expected"),
    [
        ("linux", "WAYLAND_DISPLAY", {"wl-paste": "cat picture"}, png()),
        ("linux", "DISPLAY", {"xclip": "cat picture"}, png()),
        ("linux", "DISPLAY", {"xclip": "exit 1"}, "There is no picture in the clipboard."),
        ("linux", "DISPLAY", {"xclip": "exec sleep 1000"}, "There is no picture in the clipboard."),
        ("linux", "DISPLAY", {}, "xclip must be installed"),
        ("linux", "OTHER", {"xclip": "cat picture"}, "There is no clipboard here."),
        ("darwin", "OTHER", {"pngpaste": "exit 1", "osascript": f"echo «data PNGf{HEX}»"}, png()),
        ("darwin", "OTHER", {"osascript": "echo missing value"}, "There is no picture in the clipboard."),
        ("linux", "WSL_DISTRO_NAME", {"powershell.exe": f"echo {BASE64}"}, png()),
        ("linux", "WSL_DISTRO_NAME", {"powershell.exe": "echo 'a b!'"}, "There is no picture in the clipboard."),
    ],
)
async def test_the_picture_in_the_clipboard(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    platform: str,
    variable: str,
    programs: dict[str, str],
    expected: bytes | str,
) -> None:
    slow = any("sleep" in each for each in programs.values())
    monkeypatch.setattr(clipboard, "WAIT_SECONDS", 0.1 if slow else 50)
    (tmp_path / "picture").write_bytes(png())
    for name, does in programs.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\ncd '{tmp_path}'\n{does}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    environ = {"PATH": f".:relative:{tmp_path}", variable: "x"}
    if isinstance(expected, bytes):
        assert await clipboard_picture(platform, environ) == expected
        return
    with pytest.raises(AmanuError, match=expected):
        await clipboard_picture(platform, environ)


async def test_no_program_of_the_folder_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "xclip"
    program.write_text("#!/bin/sh\ntouch ran\n")
    program.chmod(0o755)
    with pytest.raises(AmanuError, match="xclip must be installed"):
        await clipboard_picture("linux", {"PATH": ".::x", "DISPLAY": ":0"})
    assert not (tmp_path / "ran").exists()


class Told(PromptContext):
    def __init__(self) -> None:
        self.said: list[str] = []

    def tell(self, error: AmanuError) -> None:
        self.said.append(str(error))


@pytest.mark.parametrize(
    ("file", "data", "typed", "expected", "told"),
    [
        ("a b.png", png(), "see <'{}' >, please", "see [picture 1], please", ""),
        ("a.png", b"no picture", "<{}>!", "{}!", ""),
        ("a.png", None, "<{}>!", "{}!", ""),
        ("a.png", png(bytes_at_least=MOST_BYTES + 1), "<{}>!", "{}!", "at most 3.75 MiB"),
        ("a.png", png()[:-9], "<{}>!", "{}!", "no whole PNG"),
    ],
)
async def test_a_pasted_path_becomes_the_picture(
    tmp_path: Path, file: str, data: bytes | None, typed: str, expected: str, told: str
) -> None:
    path = tmp_path / file
    if data is not None:
        path.write_bytes(data)
    context = Told()
    with create_pipe_input() as keyboard:
        terminal = Terminal(context, keyboard=keyboard, screen=DummyOutput())
        reading = asyncio.create_task(terminal.read(lambda: False))
        keyboard.send_text(typed.replace("<", "\x1b[200~").replace(">", "\x1b[201~").format(path))
        async with asyncio.timeout(50):
            while terminal.typed != expected.format(path) or (told and not context.said):
                await asyncio.sleep(0.01)
        assert told in "".join(context.said)
        keyboard.send_text("\r")
        assert await reading == expected.format(path)
        await terminal.close()


def test_a_pipe_is_no_picture(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "a.png")
    assert read_picture(tmp_path / "a.png") is None
    assert read_picture(tmp_path) is None
