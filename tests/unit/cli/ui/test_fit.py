"""The order of names for what is typed of them."""

import pytest

from amanu.cli.ui.fit import Fit, fit


@pytest.mark.parametrize(
    ("typed", "texts", "expected"),
    [
        ("", ["model"], (0, 0)),
        ("model", ["model"], (0, 5)),
        ("Mod", ["model"], (1, 3)),
        ("son", ["Claude Sonnet"], (2, 3)),
        ("son", ["anthropic:claude-sonnet"], (2, 3)),
        ("ckp", ["checkpoints"], (3, 6)),
        ("points", ["checkpoints"], (4, 6)),
        ("npt", ["checkpoints not"], None),
        ("hkp", ["checkpoints"], (5, 5)),
        ("cs", ["checkpoints"], None),
        ("x", ["model"], None),
        ("d", ["model"], None),
        ("m", ["a model"], (2, 1)),
        ("xm", ["model"], None),
        ("mod", ["a mode", "model"], (1, 3)),
        ("claude son", ["Claude Sonnet"], (2, 3)),
        ("claude opus", ["Claude Sonnet"], None),
    ],
)
def test_fit(typed: str, texts: list[str], expected: Fit | None) -> None:
    assert fit(typed, *texts) == expected
