"""Sorting bit by bit gives what sorting does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.system import sorting
from amanu.system.sorting import sorted_texts


@given(texts=st.lists(st.text(max_size=3)), part=st.integers(1, 9))
def test_like_sorted(texts: list[str], part: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "_PART", part)
        assert sorted_texts(iter(texts)) == sorted(texts)
