"""Work for a client → the same work, stopped as soon as the client is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

T = TypeVar("T")


class Disconnected(Exception):
    """The client went away; nobody is left to be answered."""


async def until_disconnected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``. Raises Disconnected, after ``work`` was cancelled and has cleaned up.

    ``receive`` is watched all the while: servers tell it there and only there. The body must have
    been read. Cancelling a task lets its ``async with`` blocks await their exits, which a cancelled
    scope would not.
    """
    task = asyncio.create_task(work)
    listener = asyncio.create_task(_disconnection(receive))
    try:
        await asyncio.wait({task, listener}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Disconnected
    finally:
        listener.cancel()
        task.cancel()
        await asyncio.gather(task, listener, return_exceptions=True)


async def _disconnection(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
