"""A service account of Google's, made up, whose tokens come from a strict service on this machine."""

import json
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


@cache
def _private_key() -> str:
    key = rsa.generate_private_key(65_537, 2_048)
    kinds = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*kinds).decode()


def service_account(folder: Path, url: str) -> Path:
    """Its file, for `GOOGLE_APPLICATION_CREDENTIALS`. `url`: of a service with `/token`."""
    path = folder / "account.json"
    account = {
        "type": "service_account",
        "client_email": "amanu@shop-1.example",
        "private_key": _private_key(),
        "token_uri": f"{url}/token",
    }
    path.write_text(json.dumps(account))
    return path
