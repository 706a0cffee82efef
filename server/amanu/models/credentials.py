"""Keys of model services: from the client's environment, else from `auth.json` in the user's configuration folder; and
the sign-in with ChatGPT, which takes precedence over a key for OpenAI in that file.

`auth.json` is `{"keys": {vendor: key}}`, mode 0600 in a folder of mode 0700. Keys leave this module only towards
the service they are for; `secrets.Secrets` takes them out of any text that goes elsewhere.
"""

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amanu.models.chatgpt_tokens import ChatGPTTokens
from amanu.system.private_file import PrivateFile
from amanu.text.redaction import Secrets
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import AuthStatus

VARIABLES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "google-openai": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK",),
    "foundry": ("ANTHROPIC_FOUNDRY_API_KEY",),
}
"""Vendor → environment variables that hold its key, the first one set wins."""


SIGN_IN_VENDOR = "openai"


class Credentials:
    """The user's keys. `path` is the file `auth.json`, with `chatgpt.json` beside it; both are read anew whenever they
    changed on disk. `secrets` learns every key and token that passes through here."""

    def __init__(self, path: Path, secrets: Secrets | None = None) -> None:
        self._file = PrivateFile(path)
        self._secrets = secrets or Secrets()
        self.chatgpt = ChatGPTTokens(path.with_name("chatgpt.json"), self._secrets)
        self._variables = dict(VARIABLES)
        self._read: dict[str, Any] = {}
        self._kept: dict[str, str] = {}
        """The keys of `_read`."""

    def __repr__(self) -> str:
        return f"Credentials({str(self._file.path)!r})"

    def key(self, vendor: str, environment: Mapping[str, str]) -> str | None:
        """The vendor's key, or None. The client's environment takes precedence over the file."""
        variable = self.variable(vendor, environment)
        key = environment[variable].strip() if variable is not None else self._keys().get(vendor)
        if key:
            self._secrets.learn([key])
        return key

    def credential(self, vendor: str, environment: Mapping[str, str]) -> str | ChatGPTTokens | None:
        """The credential for requests to the vendor's own service: the key in the environment, else the sign-in, else
        the key in the file, else None."""
        if vendor == SIGN_IN_VENDOR and self.variable(vendor, environment) is None and self.chatgpt.signed_in:
            return self.chatgpt
        return self.key(vendor, environment)

    def variable(self, vendor: str, environment: Mapping[str, str]) -> str | None:
        """The variable of the environment that holds the vendor's key, or None."""
        names = self._variables.get(vendor, ())
        return next((name for name in names if environment.get(name, "").strip()), None)

    def expect(self, vendor: str, variable: str) -> None:
        """A further vendor (an endpoint of the user's own), and the variable that may hold its key."""
        self._variables[vendor] = (variable,)

    def variables(self, vendor: str) -> tuple[str, ...]:
        """The variables that may hold the vendor's key."""
        return self._variables.get(vendor, ())

    def status(self, environment: Mapping[str, str]) -> list[AuthStatus]:
        """Where each vendor's key comes from; never the key."""
        keys = self._keys()
        sign_in = self.chatgpt.kept()
        statuses: list[AuthStatus] = []
        for vendor in sorted({*self._variables, *keys}):
            variable = self.variable(vendor, environment)
            is_signed_in = vendor == SIGN_IN_VENDOR and bool(sign_in.access_token)
            account = sign_in.account or "ChatGPT" if is_signed_in else None
            if variable is not None:
                statuses.append(AuthStatus(vendor=vendor, source="environment", variable=variable, account=account))
            elif is_signed_in:
                source = "endedSignIn" if sign_in.ended else "signIn"
                statuses.append(AuthStatus(vendor=vendor, source=source, account=account))
            elif vendor in keys:
                statuses.append(AuthStatus(vendor=vendor, source="file"))
            else:
                expected = self._variables[vendor][0]
                statuses.append(AuthStatus(vendor=vendor, source="none", variable=expected))
        return statuses

    def keeps(self, vendor: str) -> bool:
        """Whether the file holds a key of that vendor."""
        return vendor in self._keys()

    def set(self, vendor: str, key: str | None) -> None:
        """Keep a key in the file, or forget it (None). Raises `AmanuError`: invalidParams, storageError."""
        keys = dict(self._keys())
        if key is None:
            keys.pop(vendor, None)
        else:
            key = check_form(key)
            if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", vendor):
                raise AmanuError("invalidParams", f"{vendor!r} is not the name of a vendor.", path="vendor")
            keys[vendor] = key
            self._secrets.learn([key])
        self._file.write({"keys": keys})

    def learn(self, environment: Mapping[str, str]) -> None:
        """From now on, mask the keys in the files, and those in this environment: keys of vendors and of the user's own
        endpoints, and any variable whose name suggests a secret. Unreadable files are ignored here."""
        with contextlib.suppress(AmanuError):
            self._keys()
        with contextlib.suppress(AmanuError):
            self.chatgpt.kept()
        names = {name for names in self._variables.values() for name in names}
        self._secrets.learn(environment[name] for name in names & environment.keys())
        self._secrets.learn_environment(environment)

    def _keys(self) -> dict[str, str]:
        read = self._file.read()
        if read is not self._read:
            self._kept = {str(vendor): str(key) for vendor, key in read.get("keys", {}).items()}
            self._secrets.learn(self._kept.values())
            self._read = read
        return self._kept


def check_form(key: str) -> str:
    """The key without the space around it. Raises `AmanuError` (invalidParams) for what cannot be one."""
    key = key.strip()
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        raise AmanuError("invalidParams", "A key is one word of printable ASCII characters.", path="key")
    return key
