# SPDX-License-Identifier: Apache-2.0
"""The bridge alone with a kernel, without a server: kernels that print a lot."""

import importlib.util
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bridge_process import ENVIRONMENTS, SOURCE, BridgeProcess
from conftest import write_spec

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


@pytest.fixture
def late(tmp_path: Path) -> Iterator[BridgeProcess]:
    program = KERNELS / "bin" / "python"
    kernel = Path(__file__).with_name("late_kernel.py")
    spec = write_spec(tmp_path, "late", argv=[str(program), str(kernel), "-f", "{connection_file}"])
    bridge = BridgeProcess(tmp_path, spec, KERNELS / "bin" / "python3.11")
    yield bridge
    bridge.close()


# Fewer than ZeroMQ keeps for a subscriber that is busy (ZMQ_SNDHWM, 1,000 messages): others the kernel itself would lose.
@pytest.mark.parametrize("lines", [0, 1, 900])
def test_what_a_kernel_says_behind_its_idle_is_the_cells(late: BridgeProcess, lines: int) -> None:
    for _again in range(2):
        late.begin(str(lines))
        done, text, told = late.finish()
        assert (done["status"], told) == ("ok", "")
        assert text == "".join(f"{number}\n" for number in range(lines))


def test_a_mark_that_comes_too_late_is_no_output() -> None:
    path = SOURCE / "kernels" / "foreign" / "bridge" / "cellkeep_foreign" / "marks.py"
    spec = importlib.util.spec_from_file_location("marks", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    marks = module.Marks("Deno kernel")
    first, second = (marks.request()["code"].split("'")[1] for _ in range(2))
    assert (marks.without(f"a{first}"), marks.is_heard) == ("a", False)
    assert (marks.without(f"b{second}c"), marks.is_heard) == ("bc", True)
    assert not module.Marks("ipython").is_needed
