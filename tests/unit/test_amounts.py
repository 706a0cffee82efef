"""Numbers as a user reads them."""

import pytest

from amanu.text.amounts import byte_count, token_count


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1k"),
        (1_234, "1.2k"),
        (400_000, "400k"),
        (999_949, "999.9k"),
        (999_950, "1M"),
        (1_050_000, "1.05M"),
        (3_400_000, "3.4M"),
        (10_000_000, "10M"),
    ],
)
def test_a_number_of_tokens(count: int, expected: str) -> None:
    assert token_count(count) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, "1 byte"), (812, "812 bytes"), (4213, "4.2 kB"), (999_949, "999.9 kB"), (1_300_000, "1.3 MB")],
)
def test_sizes(value: int, expected: str) -> None:
    assert byte_count(value) == expected
