"""The chain of strategies, as a table: a situation, and where the turn goes."""

from pathlib import Path
from typing import Any

import pytest

from amanu.config import RoutingSettings, Settings
from amanu.models.catalogue import Catalogue
from amanu.models.credentials import Credentials
from amanu.models.registry import ModelRegistry
from amanu.models.routing import AUTO, HARD_FROM, RoutingContext, check, choose, goes_on, listed, otherwise, to_judge
from amanu_protocol.errors import AmanuError

MINE, DEFAULT, PLAN, EASY, HARD, FIRST, SECOND = "v:mine", "v:default", "v:plan", "v:easy", "v:hard", "v:1st", "v:2nd"
ALL = RoutingSettings(plan=PLAN, easy=EASY, hard=HARD, fallback=(FIRST, SECOND))
NAMES = {each: each.removeprefix("v:").upper() for each in (MINE, DEFAULT, PLAN, EASY, HARD, FIRST, SECOND)}
BUSY = "is overloaded"


def situation(**changed: Any) -> RoutingContext:
    plain: dict[str, Any] = {
        "model_id": AUTO,
        "default": DEFAULT,
        "mode": "ask",
        "routing": ALL,
        "usable": NAMES,
        "prompt": "Mend the parser.",
    }
    return RoutingContext(**{**plain, **changed})


def without(*missing: str) -> dict[str, str]:
    return {model_id: name for model_id, name in NAMES.items() if model_id not in missing}


CASES: dict[str, tuple[dict[str, Any], str, str | None]] = {
    # what is special, where it goes, what of the reason must be said (None: nothing)
    "chosen by name": ({"model_id": MINE}, MINE, None),
    "chosen by name, in plan mode": ({"model_id": MINE, "mode": "plan"}, MINE, None),
    "chosen by name, a hard prompt": ({"model_id": MINE, "difficulty": 99}, MINE, None),
    "chosen by name, and away": (
        {"model_id": MINE, "away": {MINE: BUSY}}, FIRST, "MINE is overloaded; 1ST is used instead",
    ),
    "the first fallback is away too": (
        {"model_id": MINE, "away": {MINE: BUSY, FIRST: BUSY}}, SECOND, "2ND is used instead",
    ),
    "the first fallback has no key": (
        {"model_id": MINE, "usable": without(FIRST), "away": {MINE: BUSY}}, SECOND, "2ND is used instead",
    ),
    "all are away: the one that is meant is tried": (
        {"model_id": MINE, "away": {MINE: BUSY, FIRST: BUSY, SECOND: BUSY}}, MINE, None,
    ),
    "away, and no fallback": ({"model_id": MINE, "routing": RoutingSettings(), "away": {MINE: BUSY}}, MINE, None),
    "a fallback that is chosen itself": (
        {"model_id": FIRST, "away": {FIRST: BUSY}}, SECOND, "2ND is used instead",
    ),
    "plan mode": ({"mode": "plan"}, PLAN, "plan mode go to PLAN"),
    "plan mode goes before difficulty": ({"mode": "plan", "difficulty": 99}, PLAN, "plan mode"),
    "plan mode, its model away": ({"mode": "plan", "away": {PLAN: BUSY}, "difficulty": 99}, HARD, "Judged hard"),
    "plan mode, no key for it": ({"mode": "plan", "usable": without(PLAN)}, DEFAULT, None),
    "plan mode, nothing set": ({"mode": "plan", "routing": RoutingSettings(easy=EASY, hard=HARD)}, DEFAULT, None),
    "the hard one is away": ({"away": {HARD: BUSY}, "difficulty": 99}, EASY, "HARD is overloaded; EASY takes"),
    "the easy one is away": ({"away": {EASY: BUSY}, "difficulty": 1}, HARD, "EASY is overloaded; HARD takes"),
    "both are away": ({"away": {EASY: BUSY, HARD: BUSY}}, DEFAULT, None),
    "both are away, and judged": ({"away": {EASY: BUSY, HARD: BUSY}, "difficulty": 1}, FIRST, "1ST is used instead"),
    "easy": ({"difficulty": HARD_FROM - 1}, EASY, f"Judged easy ({HARD_FROM - 1} of 100), so EASY"),
    "hard": ({"difficulty": HARD_FROM}, HARD, f"Judged hard ({HARD_FROM} of 100), so HARD"),
    "not judged": ({}, DEFAULT, None),
    "no key for the hard one": ({"usable": without(HARD), "difficulty": 99}, DEFAULT, None),
    "go on after a hard one": ({"prompt": "Go on.", "previous": HARD}, HARD, "HARD continues"),
    "go on after an easy one": ({"prompt": "yes, please", "previous": EASY}, EASY, "EASY continues"),
    "go on after nothing": ({"prompt": "go on"}, DEFAULT, None),
    "go on after one that is no choice any more": ({"prompt": "go on", "previous": MINE}, DEFAULT, None),
    "the default is away": ({"away": {DEFAULT: BUSY}}, FIRST, "DEFAULT is overloaded; 1ST is used instead"),
}  # fmt: skip


@pytest.mark.parametrize(("changed", "model_id", "said"), CASES.values(), ids=CASES)
def test_where_a_turn_goes(changed: dict[str, Any], model_id: str, said: str | None) -> None:
    route = choose(situation(**changed))
    assert route.model_id == model_id
    assert (route.reason is None) == (said is None)
    assert said is None or said in (route.reason or "")
    assert (route.instead_of is not None) == ("is used instead" in (said or ""))


@pytest.mark.parametrize(
    ("changed", "judged"),
    [
        ({}, True),
        ({"model_id": MINE}, False),
        ({"mode": "plan"}, False),
        ({"prompt": "continue"}, False),
        ({"away": {HARD: BUSY}}, False),
        ({"usable": without(EASY)}, False),
        ({"routing": RoutingSettings(plan=PLAN)}, False),
        ({"difficulty": 5}, False),
    ],
)
def test_a_prompt_is_judged_only_when_that_decides(changed: dict[str, Any], judged: bool) -> None:
    assert to_judge(situation(**changed)) == judged


GO_ON = [
    "go on",
    "Go on.",
    "continue",
    "ok, continue",
    "yes",
    "Yes, go ahead!",
    "keep going please",
    "ok do it",
    "next",
]
NEWS = ["go on with the parser", "continue the migration in db.py", "yes, but use tabs", "what next?", "fix it", ""]


@pytest.mark.parametrize(("prompt", "expected"), [*((each, True) for each in GO_ON), *((each, False) for each in NEWS)])
def test_what_only_says_go_on(prompt: str, expected: bool) -> None:
    assert goes_on(prompt) == expected


# `amanu:auto` ------------------------------------------------------------------------------------------

BOTH = {"easy": "gemini:gemini-3.5-flash", "hard": "anthropic:claude-opus-5-5"}
KEYS = {"ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k"}


def made(tmp_path: Path, **settings: Any) -> tuple[Settings, ModelRegistry]:
    unused = "http://127.0.0.1:9/v1"
    addresses = {"ollama": unused, "llamacpp": unused, "vllm": unused}
    chosen = Settings.model_validate({"base_urls": addresses, **settings})
    return chosen, ModelRegistry(
        chosen, Credentials(tmp_path / "auth.json"), tmp_path / "local.json", Catalogue(tmp_path / "catalogue")
    )


@pytest.mark.parametrize(
    ("settings", "environment", "expected"),
    [
        ({"routing": BOTH}, KEYS, BOTH["hard"]),
        ({"routing": BOTH, "model": "gemini:gemini-2.5-pro"}, KEYS, "gemini:gemini-2.5-pro"),
        ({"routing": BOTH, "model": AUTO}, KEYS, BOTH["hard"]),
        ({"routing": {"plan": "gemini:x"}, "model": AUTO}, KEYS, "anthropic:claude-sonnet-5-5"),
        ({"routing": {"plan": "mine:x"}}, {}, "mine:x"),
    ],
)
def test_what_auto_is_when_nothing_decides(
    tmp_path: Path, settings: dict[str, Any], environment: dict[str, str], expected: str
) -> None:
    assert otherwise(*made(tmp_path, **settings), environment) == expected


async def test_auto_is_listed_and_can_be_chosen_when_there_is_something_to_choose_by(tmp_path: Path) -> None:
    models = await listed(*made(tmp_path, routing=BOTH), KEYS)
    assert (models[0].model_id, models[0].name, models[0].available) == (AUTO, "Automatic", True)
    assert models[0].context_window == 1_000_000
    assert models[0].input_price is None  # it depends on what is chosen
    assert (await check(AUTO, *made(tmp_path, routing=BOTH), KEYS)).model_id == AUTO


@pytest.mark.parametrize("settings", [{}, {"routing": {"fallback": ["openai:gpt-6.2-sol"], "utility": "openai:x"}}])
async def test_auto_is_nothing_without_settings(tmp_path: Path, settings: dict[str, Any]) -> None:
    assert AUTO not in [each.model_id for each in await listed(*made(tmp_path, **settings), KEYS)]
    with pytest.raises(AmanuError, match="No models are configured") as caught:
        await check(AUTO, *made(tmp_path, **settings), KEYS)
    assert caught.value.kind == "modelNotFound"


async def test_auto_without_a_key_is_not_listed_and_says_what_is_missing(tmp_path: Path) -> None:
    assert AUTO not in [each.model_id for each in await listed(*made(tmp_path, routing=BOTH), {})]
    with pytest.raises(AmanuError, match="No key for Anthropic"):
        await check(AUTO, *made(tmp_path, routing=BOTH), {})


@pytest.mark.parametrize(
    ("routing", "said"),
    [
        ({"easy": "a:b"}, "easy and hard must be set together"),
        ({"fallback": ["nonsense"]}, "pattern"),
        ({"plan": ""}, "pattern"),
    ],
)
def test_settings_that_cannot_be_meant(routing: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Settings.model_validate({"routing": routing})
