# SPDX-License-Identifier: Apache-2.0
"""Two drafts of one function, as an agent works: generate, test, run, compare, in one session.

The task: merge overlapping intervals. The first draft forgets that a later interval may lie inside an
earlier one; generated tests find it, the error says so, the second draft passes, and both are timed.

Needs a running server (`cellkeep serve`) and the client (`pip install ./clients/python`):
    python notebooks/interval_merge.py
"""

from cellkeep import Session

DRAFTS = {
    "first": '''
def merge(intervals):
    merged = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return merged
''',
    "second": '''
def merge(intervals):
    merged = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged
''',
}

# The oracle counts covered points one by one: too slow to ship, too simple to be wrong.
TESTS = '''
import random

def covered(intervals):
    return {point / 2 for low, high in intervals for point in range(2 * low, 2 * high + 1)}

def check(merge, rounds=2000):
    dice = random.Random(17)
    for _ in range(rounds):
        starts = [dice.randint(0, 30) for _ in range(dice.randint(0, 8))]
        intervals = [(start, start + dice.randint(0, 10)) for start in starts]
        merged = merge(list(intervals))
        assert covered(merged) == covered(intervals), f"covers something else: {intervals} -> {merged}"
        for (_, high), (low, _) in zip(merged, merged[1:]):
            assert high < low, f"still touch or overlap: {intervals} -> {merged}"
    return rounds
'''

TIMING = '''
import timeit
dice = random.Random(3)
many = [(low, low + dice.randint(0, 20)) for low in (dice.randint(0, 10**6) for _ in range(20_000))]
round(1000 * min(timeit.repeat(lambda: merge(many), number=1, repeat=3)), 1)
'''


def main() -> dict[str, str]:
    """The verdict on each draft."""
    verdicts = {}
    with Session(metadata={"task": "merge intervals"}) as session:
        session.run(TESTS, reasoning="tests first", check=True)
        for name, draft in DRAFTS.items():
            session.run(draft, reasoning=f"the {name} draft", check=True)
            tried = session.run("check(merge)")
            if tried.ok:
                milliseconds = session.run(TIMING, check=True).text
                verdicts[name] = "passes"
                print(f"{name}: passes {tried.text} generated cases; 20,000 intervals in {milliseconds} ms")
            else:
                verdicts[name] = "fails"
                assert tried.error is not None
                print(f"{name}: fails: {tried.error.message}")
        session.run("merge([(1, 9), (2, 3), (20, 30)])", check=True)
    return verdicts


if __name__ == "__main__":
    assert main() == {"first": "fails", "second": "passes"}
