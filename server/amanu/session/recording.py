"""Records a session's exchanges with its models, or plays recorded ones instead."""

import asyncio
from collections.abc import Mapping
from typing import Literal

from amanu.models.recording import Recorder, new_path
from amanu.models.session_transport import SessionTransport
from amanu.session.core import SessionCore


class SessionRecording:
    """Of one session, with its sub-agents."""

    def __init__(self, core: SessionCore, transport: SessionTransport) -> None:
        self.line = transport
        self._core = core
        self._loop = asyncio.get_running_loop()

    def record(self, path: str | None, environment: Mapping[str, str]) -> None:
        """Record to that new file from the next request on; None ends it. Raises `AmanuError`: invalidParams as
        `new_path` does, storageError."""
        recorder = None
        if path is not None:
            state, services = self._core.state, self._core.services
            file = new_path(path, state.roots, services.home.private)
            recorder = Recorder(file, state.model_id, services.secrets.mask_output, failed=self._failed)
            recorder.hide(environment)
        previous = self.line.recorder
        self.line.recorder = recorder
        if previous is not None:
            previous.close()
            self._report("recording", "info", f"The recording was saved to {previous.path}.")
        if recorder is not None:
            self._report(
                "recording", "info", f"This session's exchanges with its models are being recorded to {recorder.path}."
            )

    def hide(self, environment: Mapping[str, str]) -> None:
        """Keep the secrets of that environment out of the recording, too."""
        if self.line.recorder is not None:
            self.line.recorder.hide(environment)

    def _failed(self, why: str) -> None:
        self.line.recorder = None
        # The thread that writes may call this.
        self._loop.call_soon_threadsafe(self._report, "recordingFailed", "warning", why)

    def _report(self, code: str, level: Literal["info", "warning"], text: str) -> None:
        if not self._core.access.closed:  # a closed session has no clients
            self._core.notices.report_on_session(code, level, text)
