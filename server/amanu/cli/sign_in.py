"""`amanu auth login openai`, `amanu auth logout openai`."""

import asyncio
import contextlib
import os
import sys
import threading
import webbrowser
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from amanu.cli import exits
from amanu.cli.text import one_line, visible

if TYPE_CHECKING:
    from amanu.models.credentials import Credentials


def login(*, browse: bool) -> int:
    """Sign in and say how it went. `browse`: open the browser, else print the address alone. Raises `AmanuError`."""
    from amanu.models.chatgpt_login import sign_in

    auth = _credentials()
    try:
        account = asyncio.run(sign_in(auth.chatgpt, lambda address: _show(address, browse)))
    except KeyboardInterrupt:
        print("Cancelled; nothing was changed.", file=sys.stderr)
        return exits.CANCELLED
    print(f"openai: signed in{f' as {one_line(account)}' if account else ''}")
    if (variable := auth.variable("openai", os.environ)) is not None:
        print(f"{variable} in your environment takes precedence over the sign-in: unset it to use your plan.")
    return exits.OK


def logout() -> int:
    """Forget the tokens. Raises `AmanuError`."""
    from amanu.core.model import ModelError

    try:
        was_signed_in = asyncio.run(_credentials().chatgpt.forget())
    except ModelError as error:
        print(visible(str(error)), file=sys.stderr)
        return exits.FAILED
    print(
        "openai: signed out on this machine" if was_signed_in else "openai: you were not signed in",
        file=None if was_signed_in else sys.stderr,
    )
    return exits.OK


def _credentials() -> "Credentials":
    from amanu.home import find_home
    from amanu.models.credentials import Credentials

    return Credentials(find_home().make().auth)


def _show(address: str, browse: bool) -> None:
    opens = browse and _has_browser()
    print("Sign in with ChatGPT in your browser" + (", which opens now. If it does not, open:" if opens else ". Open:"))
    print(f"\n{visible(address)}\n")
    if "SSH_CONNECTION" in os.environ:
        port = urlsplit(parse_qs(urlsplit(address).query)["redirect_uri"][0]).port
        print(f"If your browser is on another machine, forward the port first: ssh -L {port}:127.0.0.1:{port} HOST\n")
    print("Waiting for you to sign in, for up to ten minutes (Ctrl-C to cancel) …", flush=True)
    if opens:
        # not awaited: some browsers end only when they are closed
        threading.Thread(target=_open, args=(address,), daemon=True).start()


def _open(address: str) -> None:
    with contextlib.suppress(webbrowser.Error, OSError):
        webbrowser.open(address)


def _has_browser() -> bool:
    """Without a display, Linux may open a text browser, which would take over the terminal."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
