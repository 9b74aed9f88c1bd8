"""FFmpeg's own HTTP client, as a player uses it: posts, and decodes what has come so far:
``python play.py [address]``. Needs ``av``.
"""

from __future__ import annotations

import json

import av
from running import TEXT, Watch, address


def play(url: str, response_format: str) -> None:
    body = {"model": "tts-1", "voice": "alloy", "input": TEXT, "response_format": response_format}
    options = {
        "headers": "Content-Type: application/json\r\n",
        "post_data": json.dumps(body).encode().hex(),
        "probesize": "32",  # bytes to look at before it plays
        "fflags": "nobuffer",
    }
    watch = Watch()
    with av.open(f"{url}/v1/audio/speech", options=options) as stream:
        for frame in stream.decode(audio=0):
            watch.heard(frame.samples)
            rate = frame.sample_rate
    print(f"  {response_format}: {watch.told(watch.size / rate)}")


if __name__ == "__main__":
    print(f"FFmpeg {av.ffmpeg_version_info}, reading progressively (av {av.__version__}):")
    for name in ("mp3", "opus", "aac", "flac", "wav"):
        play(address(), name)
