"""Token buckets: how often one client may ask."""

from attakit.service.web.limits import TokenBuckets


class Seconds:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_burst_is_allowed_and_then_the_rate():
    seconds = Seconds()
    buckets = TokenBuckets(60, burst=3, ticks=seconds)

    first = [buckets.wait("a") for _ in range(4)]
    seconds.now = 0.5
    early = buckets.wait("a")
    seconds.now = 1.0
    later = buckets.wait("a")

    assert first == [0.0, 0.0, 0.0, 1.0]
    assert early == 0.5
    assert later == 0.0


def test_clients_do_not_share_a_bucket():
    buckets = TokenBuckets(60, burst=1, ticks=Seconds())

    assert buckets.wait("a") == 0.0
    assert buckets.wait("b") == 0.0
    assert buckets.wait("a") > 0


def test_saved_up_requests_are_bounded():
    seconds = Seconds()
    buckets = TokenBuckets(60, burst=2, ticks=seconds)
    buckets.wait("a")
    seconds.now = 1e6

    assert [buckets.wait("a") > 0 for _ in range(3)] == [False, False, True]


def test_only_so_many_clients_are_remembered():
    buckets = TokenBuckets(60, burst=1, ticks=Seconds(), clients=100)

    for number in range(1000):
        buckets.wait(str(number))

    assert len(buckets._buckets) == 100
    assert buckets.wait("999") > 0
