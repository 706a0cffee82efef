"""Questions of the model in Neovim, answered through `vim.ui`, with the real daemon."""

from typing import Any

import pytest

from editors.test_neovim import ENDED, STATE, Start, folder, home, start

__all__ = ["folder", "home", "start"]  # fixtures: pytest finds them by name

OPTIONS = [{"label": "SQLite", "description": "One file."}, {"label": "Postgres"}]
DATABASE = {"header": "Database", "question": "Which database?", "options": OPTIONS}
OTHERS = {"header": "Others", "question": "Which others?", "options": OPTIONS, "multi_select": True}
NAME = {"header": "Name", "question": "What is it called?"}
SURE = {"header": "Sure", "question": "Really?", "kind": "yes_no"}

ANSWERED: list[tuple[list[dict[str, Any]], list[str], str]] = [
    ([DATABASE], ["Postgres"], "Answer: Postgres"),
    ([DATABASE], ["Something else", "Oracle"], "Answer: Oracle"),
    (
        [OTHERS, NAME, SURE],
        ["Postgres", "SQLite", "Send: Postgres; SQLite", "shop", "No"],
        "Answer: Postgres; SQLite\n\nWhat is it called?\nAnswer: shop\n\nReally?\nAnswer: No",
    ),
    ([DATABASE], ["Decline", "You decide."], "The user declined to answer. They said: You decide."),
]


@pytest.mark.parametrize(("questions", "answers", "told"), ANSWERED)
def test_what_is_chosen_reaches_the_model(
    start: Start, questions: list[dict[str, Any]], answers: list[str], told: str
) -> None:
    steps: list[dict[str, Any]] = [
        {"calls": [{"tool": "ask_user", "arguments": {"questions": questions}}]},
        {"expect": told, "text": "Heard."},
    ]
    vim = start(steps=steps)
    vim.keys(":Amanu<CR>")
    vim.keys("make it<C-s>")
    vim.until(f"{STATE} and #{STATE}.questions > 0")
    assert f"┆ {questions[0]['header']}: {questions[0]['question']}\n" in vim.chat()
    assert "┆ answer: :Amanu /approve or <Space>ap" in vim.chat()
    vim.answer(*answers)
    vim.keys("<Esc>:Amanu /approve<CR>")
    vim.until(f"({ENDED}) == 'completed'")
    assert vim.chat().rstrip().endswith("Heard.")
    assert vim.lua(f"return #{STATE}.questions") == 0


def test_a_late_answer_is_told(start: Start) -> None:
    steps: list[dict[str, Any]] = [
        {"calls": [{"tool": "ask_user", "arguments": {"questions": [NAME]}}]},
        {"expect": "Answer: theirs", "text": "Heard."},
    ]
    vim = start(steps=steps)
    vim.keys(":Amanu<CR>")
    vim.keys("make it<C-s>")
    vim.until(f"{STATE} and #{STATE}.questions > 0")
    vim.lua(  # somebody is faster than what is typed
        """
        local session, protocol = require("amanu.session"), require("amanu.protocol")
        vim.ui.input = function(_, done)
          local question = session.state.questions[1]
          session.ask(protocol.methods.question_answer, {
            questionId = question.itemId, outcome = "answered", answers = { q1 = "theirs" },
          }, function() end)
          done("mine")
        end
        """
    )
    vim.keys("<Esc>:Amanu /approve<CR>")
    vim.until("vim.iter(Said):any(function(each) return each:find('too late') ~= nil end)")
    vim.until(f"({ENDED}) == 'completed'")
