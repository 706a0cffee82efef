"""What a user reads when a model refuses."""

import pytest

from amanu.agent.refusals import refusal_sentence


def test_a_recommended_model_is_ready_to_be_chosen() -> None:
    sentence = refusal_sentence("I will not help with that.", "anthropic:claude-opus-5-5")
    assert sentence == (
        "I will not help with that. Its service recommends another: `/model anthropic:claude-opus-5-5`, then send it "
        "again."
    )


@pytest.mark.parametrize(
    ("detail", "opening"),
    [
        ("", "The model declined to answer. Rephrase"),
        ("SAFETY", "The service stopped the reply: the safety filter stopped it (SAFETY). Rephrase"),
        ("content_filter", "The service stopped the reply: the safety filter stopped it (content_filter). Rephrase"),
        ("RECITATION", "The service stopped the reply: it would have quoted protected text at length (RECITATION)."),
        ("cyber", "The service stopped the reply: the request looks like an attack on computers (cyber)."),
        ("SOMETHING_NEW", "The service stopped the reply (SOMETHING_NEW). Rephrase"),
        (
            "SAFETY The candidate was blocked.",
            "The service stopped the reply: the safety filter stopped it (SAFETY). The candidate was blocked. Rephrase",
        ),
        (
            "PROHIBITED_CONTENT The prompt was rejected.",
            "The service stopped the reply: the request or the reply touches on prohibited content "
            "(PROHIBITED_CONTENT). The prompt was rejected. Rephrase",
        ),
        ("SOMETHING_NEW It is new.", "The service stopped the reply (SOMETHING_NEW). It is new. Rephrase"),
        ("I will not help with that.", "I will not help with that."),
        ("Language models cannot do that.", "Language models cannot do that."),
        ("A model like me cannot do that.", "A model like me cannot do that."),
        ("No", "The service stopped the reply (No)."),
    ],
)
def test_sentence(detail: str, opening: str) -> None:
    sentence = refusal_sentence(detail)
    assert sentence.startswith(opening) and sentence.endswith(".")
