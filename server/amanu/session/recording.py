"""A session's line to its models: what is recorded of it, and what plays in their place."""

import asyncio
from collections.abc import Mapping
from typing import Literal

from amanu.models.recording import Recorder, new_path
from amanu.models.session_transport import SessionTransport
from amanu.session.core import SessionCore


class SessionRecording:
    """Of one session."""

    def __init__(self, core: SessionCore) -> None:
        self.line = SessionTransport()
        self._core = core
        self._loop = asyncio.get_running_loop()

    def record(self, path: str | None, environment: Mapping[str, str]) -> None:
        """Record to that new file from the next request on; None ends it. Raises `AmanuError`: invalidParams as
        `new_path` does, storageError."""
        recorder = None
        if path is not None:
            state, services = self._core.state, self._core.services
            place = new_path(path, state.roots, services.home.private)
            recorder = Recorder(place, state.model_id, services.secrets.mask_output, failed=self._failed)
            recorder.hide(environment)
        previous = self.line.recorder
        self.line.recorder = recorder
        if previous is not None:
            previous.close()
            self._tell("recording", "info", f"The recording is in {previous.path}.")
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

    def _tell(self, code: str, level: Literal["info", "warning"], text: str) -> None:
        if not self._core.access.closed:  # else nobody looks any more
            self._core.notices.of_session(code, level, text)
