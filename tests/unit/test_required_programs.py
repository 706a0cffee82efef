import pytest

from support.required_programs import needs


def test_a_tool_that_is_there() -> None:
    assert needs("git").endswith("git")


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_tool_that_is_missing(monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[Exception]) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="no-such-editor is not installed"):
        needs("no-such-editor")
