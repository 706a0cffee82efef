"""What is kept of a service's own words."""

from amanu.models.errors import mask
from amanu.text.redaction import MASK


def test_of_a_long_error_the_beginning_is_kept_and_no_key_that_the_cut_made_unknown() -> None:
    key = "sk-ant-api03-" + "AbC0123456789" * 5
    assert mask(f"bad key {key}", key) == f"bad key {MASK}"
    for before in range(199_900, 200_010, 7):
        said = mask("x " * (before // 2) + key + " y" * 100_000, None)
        assert len(said) < 200_000 and said.endswith("[…]")
        assert "sk-ant" not in said
