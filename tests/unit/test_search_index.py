"""The index of all that was said: any text may be looked for, what is gone is not found, and damage goes unnoticed."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from amanu.storage import index_file, search_index
from amanu.storage.search_index import Place, Reading, SearchIndex, fts_query
from amanu_protocol.errors import AmanuError

TEXT = "The tax is 0.19 of the Gesamtpreis, as compute_tax in src/till.py says: naïve rounding, 税金の計算."


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[SearchIndex]:
    index = await SearchIndex.open(folder)
    try:
        yield index
    finally:
        await index.close()


def place(key: str, text: str, turn_id: str = "t", at: int = 1) -> Place:
    return Place(key, "answer", key, turn_id, at, text)


async def put(
    index: SearchIndex, session_id: str, *places: Place, gone: Iterable[str] = (), gone_turns: Iterable[str] = ()
) -> None:
    reading = Reading(1, {each.key: each for each in places}, set(gone), set(gone_turns))
    await index.read_on(session_id, 1, lambda position: reading)


async def found(index: SearchIndex, typed: str, *sessions: str) -> list[tuple[str, str]]:
    matches = await index.matches(fts_query(typed), sessions or ("s", "other"))
    return [(match.session_id, match.item_id) for match in matches]


@pytest.mark.parametrize(
    ("typed", "query"),
    [
        ("tax", '"tax"*'),
        ("tax ", '"tax"'),
        ("a t", '"a" "t"'),
        ("税", '"税"'),
        ("the tax", '"the" "tax"*'),
        ('"the tax"', '"the tax"'),
        ('"the tax" roun', '"the tax" "roun"*'),
        ('"the ta', '"the ta"'),
        ('a"b c"de', '"a" "b c" "de"*'),
        ("NOT tax AND (", '"NOT" "tax" "AND"*'),
        ("src/till.py", '"src/till.py"*'),
        ("", ""),
        (' " "" -- * ', ""),
        ("\x00tax\x1b", '"tax"*'),
    ],
)
def test_what_is_typed_becomes_a_query(typed: str, query: str) -> None:
    assert fts_query(typed) == query


@pytest.mark.parametrize(
    ("typed", "is_found"),
    [
        ("tax", True),
        ("TAX rounding", True),
        ("rounding tax", True),
        ("round", True),
        ("round ", False),
        ("naive", True),
        ("gesamt", True),
        ("preis", False),
        ('"tax is"', True),
        ('"is tax"', False),
        ("compute_tax", True),
        ("till.py", True),
        ("0.19", True),
        ("税金", True),
        ("tax missing", False),
    ],
)
async def test_a_text_is_found_by_its_words(tmp_path: Path, typed: str, is_found: bool) -> None:
    async with opened(tmp_path) as index:
        await put(index, "s", place("a", TEXT))
        assert await found(index, typed) == ([("s", "a")] if is_found else [])


async def test_any_text_can_be_looked_for(tmp_path: Path) -> None:
    """No word of FTS5's language is one of the user's."""
    nasty = [
        *("*", '"', "'", "(", ")", "^tax", "tax^", "-tax", "+tax", "{text}", "text : tax", "col:tax", "NEAR(a b, 2)"),
        *("a AND", "OR", "NOT", "NEAR", "a* b*", '"a" * "b', "--", ";", "%", "\\", "\x00", "\ud800", "\u202e", "𝕏"),
        *("a" * 1000, '"' * 999, "a " * 500, "²½Ⅻ", "_", "·", "؀", "½", "ⓐ", "़", "👍🏽", "a\x00b", "\n", "税"),
    ]
    async with opened(tmp_path) as index:
        await put(index, "s", place("a", TEXT))
        for typed in nasty:
            await found(index, typed)
        assert await found(index, "tax") == [("s", "a")]  # nothing was taken for damage


async def test_the_words_around_are_shown(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        await put(index, "s", place("a", f"{'before ' * 100}\x02tax\x1b[31m{' after' * 100}\ud800"))
        (match,) = await index.matches(fts_query("tax"), ["s"])
        parts = (await index.excerpts(fts_query("tax"), [match.place_id, 4711]))[match.place_id]
        assert [text for text, is_found in parts if is_found] == ["tax"]
        text = "".join(text for text, _ in parts)
        assert text.startswith("…before")
        assert text.endswith("after…")
        assert len(text) < 300
        assert "\x1b" not in text


async def test_what_is_gone_is_not_found(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        texts = (
            place("a", "one tax"),
            place("b", "two tax", "u"),
            place("c", "three tax", "v"),
            place("d", "four tax"),
        )
        await put(index, "s", *texts)
        await put(index, "other", place("a", "other tax"))
        assert len(await found(index, "tax")) == 5
        await put(index, "s", place("a", "one duty"), gone={"b"}, gone_turns={"v"})
        assert sorted(await found(index, "tax")) == [("other", "a"), ("s", "d")]
        assert await found(index, "duty") == [("s", "a")]
        assert await found(index, "tax", "s") == [("s", "d")]
        await index.forget(["s", "unknown"])
        assert await found(index, "tax") == [("other", "a")]
        assert await found(index, "duty") == []
        assert await index.read() == {"other": (1, 1)}


async def test_what_is_forgotten_is_not_in_the_file(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        await put(index, "s", *(place(str(number), f"the plan of the {number}th castle") for number in range(50)))
        await index.forget(["s"])
    assert b"th castle" not in (tmp_path / search_index.NAME).read_bytes()


async def test_the_latest_come_first(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        await put(index, "s", *(place(f"{at}.{number}", "tax", at=at) for at in (5, 9, 7) for number in (0, 1)))
        assert [key for _, key in await found(index, "tax")] == ["9.1", "9.0", "7.1", "7.0", "5.1", "5.0"]


async def test_a_reading_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    positions = list[int]()

    def read(position: int) -> Reading:
        positions.append(position)
        if len(positions) == 2:
            raise KeyboardInterrupt  # killed in the middle
        return Reading(position + 10, {"a": place("a", f"tax {position}")}, complete=len(positions) > 2)

    async with opened(tmp_path) as index:
        await index.read_on("s", 5, read)
        assert await index.read() == {"s": (10, -1)}
        with pytest.raises(KeyboardInterrupt):
            await index.read_on("s", 5, read)
    async with opened(tmp_path) as index:
        assert await found(index, "tax") == [("s", "a")]
        await index.read_on("s", 5, read)
        assert positions == [0, 10, 10]
        assert await index.read() == {"s": (20, 5)}


@pytest.mark.parametrize("damage", [b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 8000])
async def test_a_damaged_file_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    async with opened(tmp_path) as index:
        await put(index, "s", place("a", "tax"))
    (tmp_path / search_index.NAME).write_bytes(damage)
    async with opened(tmp_path) as index:
        assert await index.read() == {}
        assert await found(index, "tax") == []
        await put(index, "s", place("a", "tax"))
        assert await found(index, "tax") == [("s", "a")]


async def test_tables_that_vanish_are_made_anew(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        await put(index, "s", place("a", "tax"))
        with sqlite3.connect(tmp_path / search_index.NAME) as db:
            db.execute("DROP TABLE words")
        assert await found(index, "tax") == []
        assert await index.read() == {}


async def test_two_processes_have_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as one, opened(tmp_path) as two:
        await asyncio.gather(*(put(index, "s", place(name, "tax")) for index in (one, two) for name in "abc"))
        assert (
            sorted(await found(one, "tax")) == sorted(await found(two, "tax")) == [("s", "a"), ("s", "b"), ("s", "c")]
        )


async def test_without_fts5_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Without(sqlite3.Connection):
        def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:  # type: ignore[override]
            return super().execute(sql.replace("name = 'fts5'", "name = 'fts9'"), *parameters)  # pyright: ignore

    connect = sqlite3.connect
    monkeypatch.setattr(index_file.sqlite3, "connect", lambda *given, **more: connect(*given, **more, factory=Without))  # pyright: ignore
    with pytest.raises(AmanuError, match="has no FTS5") as raised:
        await SearchIndex.open(tmp_path)
    assert raised.value.kind == "storageError"
    assert raised.value.data.hint


async def test_a_thousand_sessions_take_little(tmp_path: Path) -> None:
    """A sample of `python -m bench.search`, in time of the processor."""
    sessions = [f"session-{number}" for number in range(1000)]
    words = [f"word{number}" for number in range(500)]
    async with opened(tmp_path) as index:
        for at, session_id in enumerate(sessions):
            texts = (" ".join(words[(at * 7 + each * 11 + word) % 500] for word in range(60)) for each in range(4))
            await put(index, session_id, *(place(f"i{each}", text, at=at) for each, text in enumerate(texts)))
        for typed in ("word7 word8", "wo", "nothing"):
            begun = time.process_time()
            matches = await index.matches(fts_query(typed), sessions)
            await index.excerpts(fts_query(typed), [match.place_id for match in matches[:100]])
            assert time.process_time() - begun < 0.1, typed
