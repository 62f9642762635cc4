"""Requests that come at the same time are answered together."""

import asyncio
import threading

import pytest

from attakit.service.web.gathering import Gathering


class Doubler:
    """Doubles numbers; the first call waits until it may continue."""

    def __init__(self):
        self.batches, self.may_continue = [], threading.Event()

    def __call__(self, asked):
        self.batches.append(list(asked))
        if len(self.batches) <= 2:
            assert self.may_continue.wait(60)
        return [ValueError(f"no {one}") if one == 13 else 2 * one for one in asked]


async def ask_while_busy(doubler, numbers, most=4):
    """Ask for two numbers, and for others while these are computed."""
    gathering = Gathering(doubler, most=most)
    busy = [asyncio.create_task(gathering.ask(one)) for one in (1, 2)]
    while len(doubler.batches) < 2:
        await asyncio.sleep(0.001)
    rest = [asyncio.create_task(gathering.ask(one)) for one in numbers]
    while gathering.waiting < len(numbers):
        await asyncio.sleep(0.001)
    return gathering, busy, rest


def test_what_comes_alone_waits_for_nobody_and_the_rest_is_answered_together():
    doubler = Doubler()

    async def play():
        _, busy, rest = await ask_while_busy(doubler, range(3, 9))
        doubler.may_continue.set()
        return await asyncio.gather(*busy, *rest)

    assert asyncio.run(play()) == [2, 4, 6, 8, 10, 12, 14, 16]
    assert sorted(doubler.batches[:2]) == [[1], [2]]
    assert sorted(doubler.batches[2:]) == [[3, 4, 5, 6], [7, 8]]  # two threads: any order


def test_an_error_belongs_to_one_request():
    doubler = Doubler()
    doubler.may_continue.set()

    async def play():
        gathering = Gathering(doubler, most=4)
        return await asyncio.gather(*(gathering.ask(n) for n in (5, 13)), return_exceptions=True)

    good, bad = asyncio.run(play())
    assert good == 10
    assert str(bad) == "no 13"


def test_an_error_of_the_work_itself_reaches_all():
    def fail(_):
        raise RuntimeError("broken")

    async def play():
        await Gathering(fail, most=4).ask(1)

    with pytest.raises(RuntimeError, match="broken"):
        asyncio.run(play())


def test_a_client_that_has_left_is_not_answered():
    doubler = Doubler()

    async def play():
        gathering, busy, (gone, kept) = await ask_while_busy(doubler, (3, 4))
        gone.cancel()
        await asyncio.sleep(0.01)
        doubler.may_continue.set()
        return await asyncio.gather(*busy, kept), gathering.waiting

    assert asyncio.run(play()) == ([2, 4, 8], 0)
    assert doubler.batches[2:] == [[4]]
