"""What the scripts here share: words to say, a watch, and a look at the server's streams."""

from __future__ import annotations

import sys
import time
import urllib.request

SENTENCES = ("The kettle is on. ", "The bread is still warm.")
TEXT = "".join(SENTENCES)


def address() -> str:
    """The server's, from the command line."""
    return sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"


class Watch:
    """Counts audio as it arrives, against the time since it was made (or started again)."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self._began = time.monotonic()
        self.first: float | None = None  # seconds until the first audio
        self.pieces = 0
        self.size = 0  # in whatever unit `heard` is told

    def heard(self, size: int) -> None:
        """Some audio has arrived."""
        if self.first is None:
            self.first = self.passed
        self.pieces += 1
        self.size += size

    @property
    def passed(self) -> float:
        return time.monotonic() - self._began

    def told(self, seconds: float) -> str:
        """A line about so many seconds of audio. Raises SystemExit for less than a second."""
        if seconds < 1:
            raise SystemExit(f"only {seconds:.2f} s of audio came")
        return f"first audio after {self.first:.2f} s, {seconds:.2f} s in {self.passed:.2f} s"


def seconds_until_free(url: str) -> float:
    """How long the server goes on speaking to somebody. Raises SystemExit after ten seconds."""
    began = time.monotonic()
    while (passed := time.monotonic() - began) < 10:
        with urllib.request.urlopen(f"{url}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        if "tontaube_active_streams 0.0" in lines:
            return passed
        time.sleep(0.02)
    raise SystemExit("the server still speaks to somebody who has left")
