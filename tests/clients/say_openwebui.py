"""Open WebUI's requests against a running server: ``python say_openwebui.py [address]``.

Its settings page asks for models and voices, without a key; a chat posts sentence by sentence,
with neither format nor streaming, and keeps each answer as an MP3 file. Needs ``httpx`` and ``av``.
"""

from __future__ import annotations

import asyncio
import io

import av
import httpx
from running import SENTENCES, Watch, address


async def main(url: str) -> None:
    async with httpx.AsyncClient(base_url=f"{url}/v1", timeout=60) as client:
        first = await client.get("/audio/models")
        assert first.is_client_error, "Open WebUI would not go on to /models"
        models = [model["id"] for model in (await client.get("/models")).json()["data"]]
        listed = (await client.get("/audio/voices")).json()["voices"]
        voices = {voice["id"]: voice["name"] for voice in listed}
        watch = Watch()
        seconds = 0.0
        for answer in await asyncio.gather(
            *(
                client.post(
                    "/audio/speech",
                    json={"input": sentence, "voice": next(iter(voices)), "model": models[0]},
                    headers={"Authorization": "Bearer unused"},
                )
                for sentence in SENTENCES
            )
        ):
            answer.raise_for_status()
            with av.open(io.BytesIO(answer.content)) as file:
                kind = (answer.headers["content-type"], file.format.name)
                seconds += sum(frame.samples for frame in file.decode(audio=0)) / 24_000
    assert kind == ("audio/mpeg", "mp3"), kind
    print(f"Open WebUI's requests: models {models}, voices {voices}")
    print(f"  {len(SENTENCES)} sentences at once: {seconds:.2f} s of mp3 in {watch.passed:.2f} s")


if __name__ == "__main__":
    asyncio.run(main(address()))
