# SPDX-License-Identifier: Apache-2.0
"""The bridge alone with a kernel, without a server: kernels that print a lot."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bridge_process import ENVIRONMENTS, BridgeProcess

KERNELS = ENVIRONMENTS / "kernels"
# Reads at most that long, also on a busy machine.
FLOOD_SECONDS = 3
INTERRUPT_SECONDS = 45
# Of the bridge while a kernel floods it; without a bound it would pass that within seconds.
MEMORY_MAX = 400 << 20


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], BridgeProcess]]:
    started: list[BridgeProcess] = []

    def make(name: str) -> BridgeProcess:
        spec = KERNELS / "share" / "jupyter" / "kernels" / name
        started.append(BridgeProcess(tmp_path, spec, KERNELS / "bin" / "python3.11"))
        return started[-1]

    yield make
    for bridge in started:
        bridge.close()


def test_a_flood_can_be_interrupted(start: Callable[[str], BridgeProcess]) -> None:
    """xeus-python publishes one message for each print, and ends when it is interrupted."""
    bridge = start("xpython")
    bridge.begin("while True: print(1)")
    until = time.monotonic() + FLOOD_SECONDS
    while time.monotonic() < until:
        assert bridge.event()["event"] == "stdout"
    assert bridge.memory() < MEMORY_MAX
    bridge.send(request="interrupt")
    until = time.monotonic() + INTERRUPT_SECONDS
    with pytest.raises(EOFError, match="ended with 0"):
        while time.monotonic() < until:
            assert bridge.event()["event"] == "stdout"


def test_many_lines_arrive(start: Callable[[str], BridgeProcess]) -> None:
    bridge = start("python3")
    bridge.begin("for i in range(20_000): print(i)")
    done, text, told = bridge.finish()
    assert (done["status"], told) == ("ok", "")
    assert text == "".join(f"{i}\n" for i in range(20_000))


def test_a_lost_idle_is_not_waited_for_and_is_reported(start: Callable[[str], BridgeProcess]) -> None:
    bridge = start("python3")
    bridge.begin(
        "kernel = get_ipython().kernel; publish = kernel._publish_status\n"
        "def lose(*values, **named): kernel._publish_status = publish\n"
        "kernel._publish_status = lose; print('said')"
    )
    done, text, told = bridge.finish()
    assert (done["status"], text) == ("ok", "said\n")
    assert "lost" in told
    bridge.begin("print('after')")
    assert bridge.finish()[1:] == ("after\n", "")
