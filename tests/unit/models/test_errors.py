"""What is kept of a service's own words."""

import pytest

from amanu.core.model import AuthFailed
from amanu.models.errors import mask, status_error
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
