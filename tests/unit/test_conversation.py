"""Every call has exactly one result before the next request, whatever a crash left in the journal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.core.conversation import (
    ENTRY,
    INTERRUPTED,
    Assistant,
    BrokenConversation,
    Call,
    Compacted,
    Conversation,
    Masked,
    Message,
    Native,
    Result,
    Results,
    Text,
    User,
)


@pytest.mark.parametrize(
    "entry",
    [
        '{"kind":"result","call_id":"a","tool":"t","text":"of an older version"}',
        '{"kind":"result","call_id":"a","tool":"t","text":"x","fields":{"b":1,"a":[0.5,null]}}',
    ],
)
def test_results_of_the_journal_are_read_as_they_were(entry: str) -> None:
    read = ENTRY.validate_json(entry)
    assert isinstance(read, Result)
    assert read.pictures == ()
    assert read.sent_text == ('{"b":1,"a":[0.5,null]}' if read.fields else "of an older version")


def user(text: str = "hi") -> User:
    return User(text=text)


def reply(*ids: str, text: str = "ok") -> Assistant:
    return Assistant(parts=(Text(text=text), *(Call(call_id=each, tool="t", arguments={}) for each in ids)))


def result(call_id: str, text: str = "done") -> Result:
    return Result(call_id=call_id, tool="t", text=text)


def results(*ids: str, notes: tuple[str, ...] = ()) -> Results:
    return Results(results=tuple(result(each) for each in ids), notes=notes)


def note(text: str) -> Results:
    return Results(results=(), notes=(text,))


def interrupted(call_id: str) -> Result:
    return Result(call_id=call_id, tool="t", text=INTERRUPTED, is_error=True)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([user(), reply()], [user(), reply()]),
        # results come in the order they were finished, and go in call order
        ([reply("a", "b"), result("b"), result("a")], [reply("a", "b"), results("a", "b")]),
        # a crash while b ran
        ([reply("a", "b"), result("a")], [reply("a", "b"), Results(results=(result("a"), interrupted("b")))]),
        ([reply("a")], [reply("a"), Results(results=(interrupted("a"),))]),
        # strays and repeats change nothing
        ([user(), result("x")], [user()]),
        ([reply("a"), result("a"), result("a", "again")], [reply("a"), results("a")]),
        # notes come after results, else as a message of their own
        ([reply("a"), result("a"), note("n")], [reply("a"), results("a", notes=("n",))]),
        ([reply("a"), note("n"), result("a")], [reply("a"), results("a", notes=("n",))]),
        ([reply(), note("n"), note("m")], [reply(), user("n"), user("m")]),
        ([reply("a"), user("next")], [reply("a"), Results(results=(interrupted("a"),)), user("next")]),
    ],
)
def test_load(entries: list[User | Assistant | Result | Results], expected: list[Message]) -> None:
    assert list(Conversation.load(entries)) == expected


@pytest.mark.parametrize(
    "messages",
    [
        [reply("a")],
        [reply("a"), user()],
        [reply("a"), results("b")],
        [reply("a", "b"), results("b", "a")],
        [user(), results("a")],
        [results("a")],
    ],
)
def test_a_broken_end_is_never_sent(messages: list[Message]) -> None:
    with pytest.raises(BrokenConversation):
        Conversation(messages).check()


ids = st.sampled_from("abcd")
entries = st.lists(
    st.one_of(
        st.builds(user),
        st.builds(lambda each: reply(*each), st.lists(ids, unique=True, max_size=3)),
        st.builds(result, ids),
        st.builds(note, st.just("n")),
    )
)


@given(entries)
def test_whatever_was_journalled_loads_into_a_conversation_that_may_be_sent(
    journalled: list[User | Assistant | Result | Results],
) -> None:
    loaded = list(Conversation.load(journalled))
    for end in range(1, len(loaded) + 1):
        if not (isinstance(loaded[end - 1], Assistant) and loaded[end - 1].calls):  # pyright: ignore
            Conversation(loaded[:end]).check()
    Conversation(loaded).check()


@given(entries)
def test_entries_survive_the_journal(journalled: list[User | Assistant | Result | Results]) -> None:
    assert [ENTRY.validate_json(ENTRY.dump_json(entry)) for entry in journalled] == journalled


@given(st.lists(st.integers(0, 4), max_size=30), st.integers(1, 5))
def test_who_follows_it_is_told_which_messages_are_still_the_first(moves: list[int], every: int) -> None:
    conversation = Conversation([user()])
    seen, rewrites = list(conversation), conversation.rewrites
    for number, move in enumerate(moves):
        match move:
            case 0:
                native = Native(wire="w", model="m", blocks=[], call_ids={f"theirs{number}": f"c{number}"})
                conversation.append(reply(f"c{number}").model_copy(update={"native": native}))
                conversation.append(results(f"c{number}"))
            case 1:
                conversation.add_notes("listen")
            case 2:
                conversation.mask(Masked(texts={f"c{n}": "short" for n in range(number)}))
            case 3:
                conversation.compact(Compacted(replaced=2, text="all before", snapshot=""))
            case _:
                conversation.replace_with(Conversation([*conversation][:-1]))
        if number % every == 0:
            same = conversation.unchanged(seen, rewrites)
            assert all(old is new for old, new in zip(seen[:same], conversation, strict=False))
            assert same in (len(seen), len(conversation)) or seen[same] is not conversation[same]
            seen, rewrites = list(conversation), conversation.rewrites
    natives = [message.native for message in conversation if isinstance(message, Assistant)]
    known = {wire_id for native in natives if native is not None for wire_id in native.call_ids}
    assert known == {f"theirs{n}" for n in range(len(moves)) if conversation.has_wire_id(f"theirs{n}")}
