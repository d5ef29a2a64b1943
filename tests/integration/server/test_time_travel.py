# SPDX-License-Identifier: Apache-2.0
"""Random programs of cells, files, failures, checkpoints, rollbacks, branches and merges (time_walk.py),
against a model (time_model.py): every state that is read back is the model's.

The programs are the same at each run; `--hypothesis-seed=N` of pytest makes others.
CELLKEEP_TIME_TRAVEL_PROGRAMS=N is the long form: N programs, and a failure shows the shortest one that fails.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Callable

import hypothesis
import hypothesis.core
import pytest
from hypothesis.stateful import run_state_machine_as_test

from harness import Server
from time_model import Box, Mark
from time_walk import TimeTravel

LONG = "CELLKEEP_TIME_TRAVEL_PROGRAMS" in os.environ
PROGRAMS = int(os.environ.get("CELLKEEP_TIME_TRAVEL_PROGRAMS", "12"))
STEPS_MAX = 40
pytestmark = pytest.mark.timeout(7200 if LONG else 120)

# Leaves nothing behind: no folder beside the tests.
HYPOTHESIS_HOME = tempfile.TemporaryDirectory(prefix="cellkeep-hypothesis-")  # gone at the exit
hypothesis.configuration.set_hypothesis_home_dir(HYPOTHESIS_HOME.name)
SETTINGS = hypothesis.settings(
    max_examples=PROGRAMS,
    stateful_step_count=STEPS_MAX,
    derandomize=hypothesis.core.global_force_seed is None,
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    phases=[hypothesis.Phase.generate, *([hypothesis.Phase.shrink] if LONG else [])],
    suppress_health_check=list(hypothesis.HealthCheck),
)


@pytest.fixture
def walk(server: Server) -> Callable[..., Counter]:
    """Runs programs, and counts what they did."""

    def run(box_type: type[Box] = Box, **settings: object) -> Counter:
        counted: Counter[str] = Counter()
        members = {"server": server, "box_type": box_type, "counted": counted}
        machine = type("Walk", (TimeTravel,), members)
        run_state_machine_as_test(machine, settings=hypothesis.settings(SETTINGS, **settings))
        return counted

    return run


def test_every_state_that_is_read_back_is_the_models(walk: Callable[..., Counter]) -> None:
    counted = walk()
    print(f"{sum(counted.values())} steps: {dict(counted.most_common())}")
    wanted = ["cell", "failing cell", "kept", "unchanged", "rolled back", "discarded", "branch", "let go"]
    if LONG:
        wanted += ["merged", "revived", "died", "restart", "gone", "conflicts", "overruled", "branch from now", "put"]
    assert not [name for name in wanted if not counted[name]], counted


class ForgetsFiles(Box):
    def go_back(self, mark: Mark, reseed: bool) -> None:
        files = self.files
        super().go_back(mark, reseed)
        self.files = files


class KeepsCounting(Box):
    def go_back(self, mark: Mark, reseed: bool) -> None:
        count = self.memory.count
        super().go_back(mark, reseed)
        self.memory.count = count


class SharesMemory(Box):
    def branch(self, mark: Mark, reseed: bool) -> Box:
        made = super().branch(mark, reseed)
        made.memory = self.memory
        return made


class SeesNoChange(Box):
    def is_unchanged(self, label: str | None) -> bool:
        return self.find(self.origin) is not None and label is None


@pytest.mark.parametrize("fault", [ForgetsFiles, KeepsCounting, SharesMemory, SeesNoChange])
def test_a_model_with_a_fault_is_found_out(walk: Callable[..., Counter], fault: type[Box]) -> None:
    """As a server with that fault would be, which the model contradicts."""
    with pytest.raises(AssertionError):
        walk(fault, phases=[hypothesis.Phase.generate], max_examples=20)
