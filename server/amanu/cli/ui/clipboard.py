"""The picture in the system's clipboard, by the system's own programs. None of them is a shell."""

import asyncio
import base64
import binascii
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.cli.ui.pictures import MOST_BYTES
from amanu.system.tasks import kill, start_process
from amanu_protocol.errors import AmanuError

WAIT_SECONDS = 10.0
_POWERSHELL = (
    "Add-Type -AssemblyName System.Windows.Forms; $picture = [Windows.Forms.Clipboard]::GetImage(); "
    "if ($picture) { $bytes = New-Object IO.MemoryStream; $picture.Save($bytes, 'Png'); "
    "[Convert]::ToBase64String($bytes.ToArray()) }"
)


def _as_it_is(output: bytes) -> bytes:
    return output


def _from_hex(output: bytes) -> bytes:
    found = re.search(rb"PNGf([0-9A-F]+)", output)
    return bytes.fromhex(found[1].decode("ascii")) if found is not None else b""


def _from_base64(output: bytes) -> bytes:
    return base64.b64decode(b"".join(output.split()), validate=True)


@dataclass(frozen=True)
class Reader:
    """A program that prints the picture."""

    command: Sequence[str]
    decode: Callable[[bytes], bytes] = _as_it_is


WAYLAND = Reader(["wl-paste", "--no-newline", "--type", "image/png"])
X11 = Reader(["xclip", "-selection", "clipboard", "-target", "image/png", "-out"])
MACOS = (Reader(["pngpaste", "-"]), Reader(["osascript", "-e", "get the clipboard as «class PNGf»"], _from_hex))
WINDOWS = Reader(["powershell.exe", "-NoProfile", "-NonInteractive", "-STA", "-Command", _POWERSHELL], _from_base64)


def readers(platform: str, environ: Mapping[str, str]) -> Sequence[Reader]:
    """The programs that may know the clipboard of this screen, the best first."""
    if platform == "darwin":
        return MACOS
    found = [WAYLAND] if environ.get("WAYLAND_DISPLAY") else []
    found += [X11] if environ.get("DISPLAY") else []
    return [WINDOWS, *found] if environ.get("WSL_DISTRO_NAME") else found


async def clipboard_picture(platform: str = sys.platform, environ: Mapping[str, str] = os.environ) -> bytes:
    """A picture, or what is longer than one may be. Raises `AmanuError` when there is none."""
    known = readers(platform, environ)
    if not known:
        raise AmanuError(
            "invalidParams", "There is no clipboard here.", hint="Paste the path of a picture, or write @picture.png."
        )
    installed = [(path, each) for each in known if (path := _program(each.command[0], environ)) is not None]
    if not installed:
        names = " or ".join(each.command[0] for each in known)
        raise AmanuError("invalidParams", f"To read a picture from the clipboard, {names} must be installed.")
    for path, reader in installed:
        if picture := await _read(path, reader):
            return picture
    hint = "Text is pasted with your terminal's own key."
    raise AmanuError("invalidParams", "There is no picture in the clipboard.", hint=hint)


def _program(name: str, environ: Mapping[str, str]) -> str | None:
    """Not one that a relative part of `PATH` finds in a workspace."""
    folders = [each for each in environ.get("PATH", "").split(os.pathsep) if Path(each).is_absolute()]
    return shutil.which(name, path=os.pathsep.join(folders))


async def _read(path: str, reader: Reader) -> bytes:
    """Nothing when it fails, takes too long, or prints no picture."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    try:
        process = await start_process(kill, path, *reader.command[1:], **pipes, cwd="/")
    except OSError:
        return b""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            assert process.stdout is not None
            output = await _all(process.stdout, 2 * MOST_BYTES + 1024)  # in hex it is twice as long
        return reader.decode(output)
    except (TimeoutError, ValueError, binascii.Error):
        return b""
    finally:
        await kill(process)


async def _all(stream: asyncio.StreamReader, limit: int) -> bytes:
    parts: list[bytes] = []
    while limit > 0 and (part := await stream.read(min(limit, 1 << 16))):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)
