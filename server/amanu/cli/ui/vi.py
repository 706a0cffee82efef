"""Vi's keys in the composer, by `[terminal] editing`. Imports prompt_toolkit."""

from prompt_toolkit.application import Application
from prompt_toolkit.cursor_shapes import CursorShapeConfig, ModalCursorShapeConfig, SimpleCursorShapeConfig
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, vi_mode, vi_navigation_mode
from prompt_toolkit.key_binding.vi_state import InputMode

from amanu.config import Editing

ESC_SECONDS = {"emacs": 0.2, "vi": 0.05}
"""After Esc, for the rest of a sequence. In vi one goes on typing after it."""
_MODES = {
    InputMode.NAVIGATION: "NORMAL",
    InputMode.REPLACE: "REPLACE",
    InputMode.REPLACE_SINGLE: "REPLACE",
}

esc_is_vis: Condition = Condition(lambda: vi_mode() and not vi_navigation_mode())
"""Esc leaves the insert mode, a selection, or a command that is half typed."""


def cursor(editing: Editing) -> CursorShapeConfig:
    return ModalCursorShapeConfig() if editing == "vi" else SimpleCursorShapeConfig()


def edit_as(app: Application[None], editing: Editing) -> None:
    app.editing_mode = EditingMode.VI if editing == "vi" else EditingMode.EMACS


def mode_name(app: Application[None]) -> str:
    """NORMAL, INSERT, VISUAL or REPLACE; nothing where the keys are Emacs'."""
    if app.editing_mode != EditingMode.VI:
        return ""
    if app.current_buffer.selection_state is not None:
        return "VISUAL"
    return _MODES.get(app.vi_state.input_mode, "INSERT")
