"""Long work: progress, interruption, other threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import uptack as up

CHANNEL = up.Channel("normal-form(f=0.5, r=1e-4)")


def test_progress_is_told_and_may_stop() -> None:
    told: list[tuple[int, int]] = []
    up.simulate(CHANNEL, owners=10**6, yes=500, trials=20_000, seed=1, progress=lambda *now: told.append(now))
    assert told[-1] == (20_000, 20_000) and told == sorted(told)

    class Enough(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise Enough

    with pytest.raises(Enough):
        up.simulate(CHANNEL, owners=10**6, yes=500, trials=10**8, seed=1, progress=stop)
    with pytest.raises(TypeError, match="progress"):
        up.simulate(CHANNEL, owners=10, yes=5, trials=1, progress=3)  # type: ignore[arg-type]


WORKS = {
    "simulate": "up.simulate(c, owners=10**6, yes=500, trials=10**9)",
    "audit": "up.audit(c, samples=10**11)",
    "callable": "up.audit(lambda truth: truth, claimed_epsilon=1, samples=10**9)",
    "privacy": "up.privacy('blended(b1=0.05,b2=0.25,b3=0.25,f1=0.05,f2=0.4,ry=1e-4,rn=1e-4)', owners=10**8, work=1000)",
    "evaluate": "up.evaluate(trials=10**6)",
    "plan": "[up.plan(owners=10**6 + i, yes=500, epsilon=1, answer_epsilon=1.1, form='any') for i in range(10**6)]",
    "privatize": "[c.privatize(np.zeros(10**6, dtype=bool)) for _ in range(10**9)]",
}


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
@pytest.mark.parametrize("name", WORKS)
def test_an_interrupt_stops_it(name: str) -> None:
    # Whoever starts the tests in the background may have them ignore interrupts, which is inherited.
    code = f"""
        import signal, numpy as np, uptack as up
        signal.signal(signal.SIGINT, signal.default_int_handler)
        c = up.Channel("normal-form(f=0.5, r=1e-4)")
        print("begun", flush=True)
        try:
            {WORKS[name]}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    # Long enough to be in the midst of it, and otherwise of no importance.
    timer = threading.Timer(0.5, lambda: process.send_signal(signal.SIGINT))
    timer.start()
    try:
        said, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert said == "interrupted\n"


def test_other_threads_go_on() -> None:
    """While a simulation runs, this thread counts: it could not if the lock were held."""
    done = threading.Event()

    def work() -> None:
        up.simulate(CHANNEL, owners=10**6, yes=500, trials=50_000, seed=1)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    turns = 0
    while not done.wait(0.001):
        turns += 1
    thread.join()
    assert turns > 0


def test_threads_share_a_channel() -> None:
    truths = np.zeros(100_000, dtype=bool)
    drawn: list[int] = []
    threads = [threading.Thread(target=lambda: drawn.append(len(CHANNEL.privatize(truths)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert drawn == [100_000] * 4
