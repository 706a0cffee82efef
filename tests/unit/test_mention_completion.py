"""What a mention may become while it is typed."""

from pathlib import Path

import pytest

from amanu.session.mention_completion import rank
from amanu_protocol.requests import MentionCompleteParams
from support.scripted_session import scripted_session

WORDS = ["@problems", "@diff", "@symbol:"]
LONG = "x" * 200


@pytest.mark.parametrize(
    ("text", "typed", "items"),
    [
        ("see @car", "@car", ["@src/cart.py", '@"docs/a cart.md"']),
        ("see @CaRt.p", "@CaRt.p", ["@src/cart.py"]),
        ("@sc", "@sc", ["@src/", "@src/cart.py", '@"docs/a cart.md"']),
        ("@src", "@src", ["@src/", "@src/cart.py"]),
        ('@"a ca', '@"a ca', ['@"docs/a cart.md"']),
        ("@di", "@di", ["@diff"]),
        ("@terminal", "@terminal", []),
        ("@", "@", [*WORDS, "@src/", "@docs/", "@notes.txt", "@src/cart.py", '@"docs/a cart.md"', f"@{LONG}"]),
        ("@symbol:Ca", "@symbol:Ca", ["@symbol:Cart"]),
        ("@symbol:tot", "@symbol:tot", ["@symbol:total"]),
        ("@symbol:", "@symbol:", []),
        (f"@{LONG}yz", f"@{LONG}yz", [f"@{LONG}"]),
        ("me@ex", "", []),
        ("see", "", []),
    ],
)
@pytest.mark.parametrize("session", [True, False])
async def test_completion(tmp_path: Path, text: str, typed: str, items: list[str], session: bool) -> None:
    async with scripted_session(tmp_path) as d:
        (d.root / "src").mkdir()
        (d.root / "docs").mkdir()
        (d.root / LONG).touch()
        (d.root / "src" / "cart.py").write_text("class Cart:\n    def total(self):\n        return 1\n")
        (d.root / "docs" / "a cart.md").write_text("class\n")
        where = {"session_id": "s"} if session else {"roots": [str(d.root)]}
        params = MentionCompleteParams.model_validate({"text": text, **where}, by_name=True)
        result = await d.sessions.complete_mention(params)
        assert (result.typed, [item.text for item in result.items]) == (typed, items)


async def test_a_client_that_can_send_its_terminal_is_offered_it(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        params = MentionCompleteParams(session_id="s", text="@te", terminal=True)
        assert [item.text for item in (await d.sessions.complete_mention(params)).items] == ["@terminal", "@notes.txt"]


async def test_of_several_roots_only_what_is_in_them_is_offered(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, more_roots=["beside"]) as d:
        (tmp_path / "beside" / "src").mkdir()
        (tmp_path / "beside" / "src" / "a.py").touch()
        params = MentionCompleteParams(session_id="s", text="@")
        items = [item.text for item in (await d.sessions.complete_mention(params)).items]
        names = ["work/", "beside/", "beside/src/", "work/notes.txt", "beside/src/a.py"]
        assert sorted(items) == sorted([*WORDS, *(f"@{tmp_path}/{name}" for name in names)])


PATHS = ["src/", "src/cart.py", "src/cart_test.py", "docs/a cart.md", "README.md", "lib/scar/t.py"]


@pytest.mark.parametrize(
    ("paths", "query", "best"),
    [
        (PATHS, "cart", ["src/cart.py", "src/cart_test.py", "docs/a cart.md", "lib/scar/t.py"]),
        (["a" * 250, "a" * 240 + "/b"], "a" * 30 + "b", ["a" * 240 + "/b"]),
        (["lib/aab.py"], "bba", []),
    ],
    ids=["as one types", "names with many ways to match", "another order"],
)
def test_the_best_come_first(paths: list[str], query: str, best: list[str]) -> None:
    assert rank(paths, query) == best
