"""Gathering: small requests that come at the same time are answered together, in one thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Said = TypeVar("Said")

_THREADS = 2  # one decodes while the model of the other computes


class Gathering(Generic[Asked, Said]):
    """Hands requests to a few threads: each gets all that came since the one before.

    A thread for each request would cost more than the request itself: Python's threads take turns,
    and every switch costs time. A request that comes alone does not wait.

    Parameters
    ----------
    answer
        Answers several requests in a thread. If an answer is an exception, `ask` raises it for
        that request.
    most
        The largest number of requests that are answered together.

    Examples
    --------
    >>> numbers = Gathering(lambda asked: [2 * one for one in asked], most=8)
    >>> async def ask_thrice():
    ...     return await asyncio.gather(*(numbers.ask(one) for one in (1, 2, 3)))
    >>> asyncio.run(ask_thrice())
    [2, 4, 6]
    """

    def __init__(
        self, answer: Callable[[Sequence[Asked]], Sequence[Said | Exception]], *, most: int
    ) -> None:
        self._answer = answer
        self._most = most
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="answering")
        self._running = 0
        self._waiting: deque[tuple[Asked, asyncio.Future[Said]]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """The number of requests that no thread has started to answer."""
        return len(self._waiting)

    async def ask(self, asked: Asked) -> Said:
        """Have a request answered."""
        if self._running < _THREADS:
            return await self._ask_alone(asked)
        future: asyncio.Future[Said] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, future))
        return await future

    async def _ask_alone(self, asked: Asked) -> Said:
        """Use a thread that is free, without the detour of a task."""
        self._running += 1
        try:
            (answer,) = await self._run([asked])
        finally:
            self._end()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _run(self, asked: Sequence[Asked]) -> asyncio.Future[Sequence[Said | Exception]]:
        # A Python executor hands over in two thirds of the time that anyio needs.
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._threads, self._answer, asked)

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False)

    def _begin(self) -> None:
        """Hand all waiting requests to a thread."""
        count = min(self._most, len(self._waiting))
        together = [self._waiting.popleft() for _ in range(count)]
        self._running += 1
        task = asyncio.create_task(self._work(together))
        self._tasks.add(task)  # the loop itself holds no reference
        task.add_done_callback(self._tasks.discard)

    def _end(self) -> None:
        """Free a thread for the requests that wait."""
        self._running -= 1
        if self._waiting:
            self._begin()

    async def _work(self, together: Sequence[tuple[Asked, asyncio.Future[Said]]]) -> None:
        asked = [one for one, future in together if not future.done()]  # some clients have left
        waiting = [future for _, future in together if not future.done()]
        try:
            answers: Sequence[Said | Exception] = await self._run(asked) if asked else ()
        except Exception as error:
            answers = [error] * len(asked)
        finally:
            self._end()
        for future, answer in zip(waiting, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
