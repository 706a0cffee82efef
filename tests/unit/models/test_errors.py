"""What is kept of a service's own words."""

import errno
import socket

import httpx2
import pytest

from amanu.core.model import AuthFailed
from amanu.models.errors import mask, status_error, transport_error
from amanu.text.redaction import MASK


def test_of_a_long_error_the_beginning_is_kept_and_no_key_that_the_cut_made_unknown() -> None:
    key = "sk-ant-api03-" + "AbC0123456789" * 5
    assert mask(f"bad key {key}", key) == f"bad key {MASK}"
    for before in range(199_900, 200_010, 7):
        said = mask("x " * (before // 2) + key + " y" * 100_000, None)
        assert len(said) < 200_000 and said.endswith("[…]")
        assert "sk-ant" not in said


@pytest.mark.parametrize(
    ("status", "words", "told"),
    [
        (401, "Bad token.", "does not accept the key"),
        (403, "The API key not valid.", "does not accept the key"),
        (403, "No access to this model.", "does not allow this: No access to this model. Check that your account may"),
    ],
)
def test_a_bad_key_is_told_apart_from_what_an_account_may_not_do(status: int, words: str, told: str) -> None:
    error = status_error("Vendor", status, words)
    assert isinstance(error, AuthFailed) and told in error.message


def raised(error: OSError) -> Exception:
    """The error of the HTTP library that hides it, as it hides its causes."""
    outer = httpx2.ConnectError("All connection attempts failed")
    outer.__cause__ = OSError("All connection attempts failed")
    outer.__cause__.__context__ = error
    return outer


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (raised(socket.gaierror(-2, "Name or service not known")), "the name was not found. You seem to be offline."),
        (raised(OSError(errno.ENETUNREACH, "Network is unreachable")), "there is no network. You seem to be offline."),
        (raised(ConnectionRefusedError(111, "Connect call failed")), "nothing listens there."),
        (httpx2.ConnectError("the certificate has expired"), "the certificate has expired."),
    ],
)
def test_no_connection_is_told_in_words_and_not_by_its_number(error: Exception, told: str) -> None:
    found = transport_error("Anthropic", error, "https://api.anthropic.com", started=False)
    assert str(found) == f"Anthropic at https://api.anthropic.com cannot be reached: {told}"
