"""What a user reads when a model refuses."""

import pytest

from amanu.agent.refusals import refusal_sentence


@pytest.mark.parametrize(
    ("detail", "opening"),
    [
        ("", "The model declined to answer. Rephrase"),
        ("SAFETY", "The service stopped the reply: the safety filter stopped it (SAFETY). Rephrase"),
        ("content_filter", "The service stopped the reply: the safety filter stopped it (content_filter). Rephrase"),
        ("RECITATION", "The service stopped the reply: it would have quoted protected text at length (RECITATION)."),
        ("cyber", "The service stopped the reply: the request looks like an attack on computers (cyber)."),
        ("SOMETHING_NEW", "The service stopped the reply (SOMETHING_NEW). Rephrase"),
        ("I will not help with that.", "I will not help with that."),
    ],
)
def test_sentence(detail: str, opening: str) -> None:
    sentence = refusal_sentence(detail)
    assert sentence.startswith(opening) and sentence.endswith(".")
