"""The models in the installed SDKs of vendors against ours: each is known, or left out for a reason; what they say is
deprecated has the same last day here."""

import re

import pytest

from amanu.core.model_families import KNOWN
from amanu.core.original_models import original
from amanu.models.relatives import nearest_relative
from support.sdk_models import LEFT_OUT, SDK_MODELS, deprecated, our_days, unknown_models


@pytest.mark.parametrize("vendor", SDK_MODELS)
def test_each_model_of_an_sdk_is_known_or_left_out_for_a_reason(vendor: str) -> None:
    assert len(SDK_MODELS[vendor]()) > 20 or vendor == "openai", "OpenAI's may not be installed"
    assert unknown_models(vendor) == [], (
        "a line in MODELS or UNOFFERED (core/model_families.py), or a reason in LEFT_OUT"
    )


def test_a_reason_is_given_for_no_model_that_is_known() -> None:
    assert [model_id for model_id in KNOWN for pattern in LEFT_OUT if re.fullmatch(pattern, model_id)] == []


def test_what_anthropic_deprecates_ends_here_on_the_same_day() -> None:
    days = deprecated()
    assert days, "the SDK says so somewhere else now"
    assert our_days(days) == days


@pytest.mark.parametrize("alias", ["gemini-flash-latest", "gemini-flash-lite-latest", "gemini-pro-latest"])
def test_an_alias_names_the_newest_model_of_its_kind(alias: str) -> None:
    newest = nearest_relative(f"gemini:{alias}", KNOWN.values())
    assert newest is not None
    assert original(f"gemini:{alias}") == newest.model_id
