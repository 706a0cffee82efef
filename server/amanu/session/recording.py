"""A session's line to its models: what is recorded of it, and what plays in their place."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from amanu.models.recording import Recorder, new_path
from amanu.models.session_transport import Line
from amanu_protocol.state import SessionState


class SessionLine:
    """Of one session. `mask` takes all known keys out of a text; `tell` shows a notice: code, level, text;
    `private` are Amanu's own folders."""

    def __init__(
        self,
        mask: Callable[[str], str],
        state: SessionState,
        tell: Callable[[str, Literal["info", "warning"], str], None],
        private: Sequence[Path],
    ) -> None:
        self.line = Line()
        self._mask = mask
        self._state = state
        self._tell = tell
        self._private = private
        self._loop = asyncio.get_running_loop()

    def record(self, path: str | None, environment: Mapping[str, str]) -> None:
        """Record to that new file from the next request on; None ends it. Raises `AmanuError`: invalidParams as
        `new_path` does, storageError."""
        recorder = None
        if path is not None:
            place = new_path(path, self._state.roots, self._private)
            recorder = Recorder(place, self._state.model_id, self._mask, failed=self._failed)
            recorder.hide(environment)
        before = self.line.recorder
        self.line.recorder = recorder
        if before is not None:
            before.close()
            self._tell("recording", "info", f"The recording is in {before.path}.")
        if recorder is not None:
            self._tell("recording", "info", f"What this session and its models say is recorded in {recorder.path}.")

    def hide(self, environment: Mapping[str, str]) -> None:
        """Keep the secrets of that environment out of the recording, too."""
        if self.line.recorder is not None:
            self.line.recorder.hide(environment)

    def close(self) -> None:
        """End the recording, without a word."""
        if self.line.recorder is not None:
            self.line.recorder.close()

    def _failed(self, why: str) -> None:
        self.line.recorder = None
        # It may be told by the thread that was writing.
        self._loop.call_soon_threadsafe(self._tell, "recordingFailed", "warning", why)
