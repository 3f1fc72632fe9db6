"""One thread captures a model while others run it in the framework."""

from __future__ import annotations

import threading
import time

import pytest
import torch
from torch import nn

from graph_autofusion.gate import Gate


def test_a_capture_waits_for_runs_and_holds_up_new_ones():
    gate, seen = Gate(), []
    gate.enter()
    gate.enter()  # a run inside a run

    def capture():
        gate.close()
        seen.append("captured")
        time.sleep(0.05)
        gate.open()

    def run():
        gate.enter()
        seen.append("ran")
        gate.leave()

    capturing = threading.Thread(target=capture)
    capturing.start()
    while gate._capturing is None:
        time.sleep(0.001)
    running = threading.Thread(target=run)
    running.start()
    gate.enter()  # this thread is inside already: it goes on
    for _ in range(3):
        assert seen == []
        gate.leave()
    capturing.join()
    running.join()
    assert seen == ["captured", "ran"]


@pytest.mark.filterwarnings("ignore::graph_autofusion.notices.GafWarning")
def test_training_in_one_thread_while_others_capture(wrap):
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    fast, stop, errors, steps = wrap(model), threading.Event(), [], []

    def train():
        try:
            while not stop.is_set():
                fast(torch.randn(3, 16)).sum().backward()
                steps.append(1)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the test's finding
            errors.append(error)

    thread = threading.Thread(target=train)
    thread.start()
    with torch.no_grad():
        for rows in range(1, 7):
            x = torch.randn(rows, 16)
            torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    stop.set()
    thread.join()
    assert errors == []
    assert steps
