"""The one thread in which all model work happens: an event loop with a scheduler in it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future

from tontaube.scheduling.scheduler import Scheduler


class Worker:
    """Starts the thread, hands out its scheduler, ends it."""

    def __init__(self, make_scheduler: Callable[[], Scheduler]) -> None:
        """``make_scheduler`` runs in the thread, inside its loop."""
        self._make_scheduler = make_scheduler
        self._scheduler: Future[Scheduler] = Future()
        self._thread = threading.Thread(target=self._main, name="tontaube-worker", daemon=True)

    async def start(self) -> Scheduler:
        """The running scheduler. Raises what making it raised."""
        self._thread.start()
        return await asyncio.wrap_future(self._scheduler)

    async def stop(self) -> None:
        """Stop after the current step, cancel what is being served, wait for the thread."""
        scheduler = self._scheduler.result()
        if not scheduler.loop.is_closed():
            scheduler.loop.call_soon_threadsafe(scheduler.stop)
        await asyncio.to_thread(self._thread.join)

    def _main(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        try:
            scheduler = self._make_scheduler()
        except BaseException as error:
            self._scheduler.set_exception(error)
            return
        self._scheduler.set_result(scheduler)
        await scheduler.run()
