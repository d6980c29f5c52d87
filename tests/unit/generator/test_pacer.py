"""How many tasks are due, and when."""

from __future__ import annotations

import pytest

from services.generator.pacer import Pacer


def send_all(pacer: Pacer, now: float) -> int:
    """Send until no more tasks are due."""
    sent = 0
    while due := pacer.due(now):
        pacer.sent(due)
        sent += due
    return sent


def test_at_full_speed_a_whole_batch_is_always_due() -> None:
    pacer = Pacer("max", 50, now=0)
    for _ in range(3):
        assert pacer.due(0) == 50
        pacer.sent(50)
    assert pacer.wait(0, tick=0.05) == 0


def test_the_number_of_due_tasks_follows_the_time() -> None:
    pacer = Pacer(100, 50, now=10)
    assert pacer.due(10) == 0
    assert pacer.due(10.05) == 5
    pacer.sent(5)
    assert pacer.due(10.05) == 0
    assert pacer.due(10.1) == 5


def test_due_does_not_count_as_sent() -> None:
    pacer = Pacer(100, 50, now=0)
    assert [pacer.due(0.1) for _ in range(3)] == [10, 10, 10]


def test_no_more_than_a_batch_is_due_at_once() -> None:
    pacer = Pacer(100, 7, now=0)
    assert pacer.due(0.5) == 7
    assert send_all(pacer, 0.5) == 50


def test_after_a_delay_one_second_is_caught_up() -> None:
    pacer = Pacer(100, 1000, now=0)
    assert send_all(pacer, 60) == 100
    assert send_all(pacer, 60.5) == 50


@pytest.mark.parametrize("pace", [0.01, 0.3, 0.5, 0.99, 1, 1.5])
def test_a_pace_below_one_task_a_second_is_kept(pace: float) -> None:
    pacer = Pacer(pace, 50, now=0)
    now, sent = 0.0, 0
    while now < 100 / pace:
        now += pacer.wait(now, tick=0.05)
        sent += send_all(pacer, now)
    assert sent == pytest.approx(100, abs=1)


def test_after_a_long_delay_a_slow_pace_catches_up_one_task() -> None:
    pacer = Pacer(0.1, 50, now=0)
    assert send_all(pacer, 1000) == 1


def test_the_pace_is_kept_with_uneven_ticks() -> None:
    pacer = Pacer(333, 50, now=0)
    now, sent, step = 0.0, 0, 0
    while now < 10:
        now += (0.013, 0.051, 0.2, 0.001)[step % 4]
        step += 1
        sent += send_all(pacer, now)
    assert sent == pytest.approx(333 * now, abs=1)


def test_rounding_loses_no_task() -> None:
    pacer = Pacer(10, 50, now=0)
    assert [send_all(pacer, 0.1 * (tick + 1)) for tick in range(50)] == [1] * 50


def test_a_slow_run_waits_for_ten_tasks_but_not_longer_than_half_a_second() -> None:
    assert Pacer(50, 50, now=7).wait(7, tick=0.05) == pytest.approx(0.2)
    assert Pacer(20, 50, now=7).wait(7, tick=0.05) == pytest.approx(0.5)
    assert Pacer(5, 50, now=7).wait(7, tick=0.05) == pytest.approx(0.5)
    assert Pacer(50, 50, now=7).wait(7.15, tick=0.01) == pytest.approx(0.05)


def test_the_wait_is_until_the_next_task_but_at_least_a_tick() -> None:
    assert Pacer(0.5, 50, now=7).wait(7, tick=0.05) == pytest.approx(2)
    assert Pacer(0.5, 50, now=7).wait(8.5, tick=0.05) == pytest.approx(0.5)
    assert Pacer(1000, 50, now=7).wait(7, tick=0.05) == 0.05
    assert Pacer(0.5, 50, now=7).wait(100, tick=0.05) == 0.05
