# SPDX-License-Identifier: Apache-2.0
"""Hypothesis' state machine of test_time_travel.py: what a program may do, and what the server must answer."""

import json
from collections import Counter
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from harness import Server, Session, wait_until
from time_cells import NAMES, POOL, TOPS, Cell
from time_model import JOURNAL, PLACES, Box, Entry, Mark, Merge, Plan, compare, parent_of

# More would be the test of another thing (test_branches.py), and five deaths in a minute end a session.
SESSIONS_MAX = 5
DEPTH_MAX = 6
FRESH_MAX = 3

TEXT = st.text("xyz", max_size=4)
PATH = st.sampled_from(POOL)
NAME = st.sampled_from(NAMES)
SMALL = st.integers(0, 3)
MODE = st.sampled_from((0o600, 0o644, 0o640))
VALUE = st.one_of(st.integers(-9, 9), TEXT, st.lists(st.integers(0, 9), max_size=3))


def call(name: str, *arguments: st.SearchStrategy) -> st.SearchStrategy:
    return st.tuples(st.just(name), st.tuples(*arguments))


ACTIONS = st.lists(
    st.one_of(
        call("define", NAME, VALUE),
        call("alias", NAME, NAME),
        call("grow", NAME, SMALL),
        call("forget", NAME),
        call("step", SMALL),
        call("set_stage", TEXT),
        call("go", st.sampled_from(PLACES)),
        call("seed", SMALL),
        call("draw"),
        call("note", TEXT),
        call("seek", SMALL),
        call("write", PATH, TEXT, MODE),
        call("write", PATH, TEXT, MODE),
        call("extend", PATH, TEXT),
        call("chmod", PATH, MODE),
        call("make_directory", PATH),
        call("link", PATH, st.sampled_from(("a", "d", "nowhere"))),
        call("remove", PATH),
        call("move", PATH, PATH),
    ),
    max_size=6,
)
# Which of the sessions, or of the checkpoints, counted modulo their number.
ANY = st.integers(0, 11)
LABEL = st.sampled_from((None, None, "first", "second"))


class Twin:
    """A session, and what it must be."""

    def __init__(self, session: Session, box: Box) -> None:
        self.session, self.box = session, box

    def ask(self, method: str, route: str, body: object = None) -> tuple[int, dict]:
        answer = self.session.server.request(method, self.session.path + route, json=body)
        return answer.status_code, answer.json() if answer.content else {}

    def run(self, code: str, status: str = "ok") -> dict:
        result = self.session.execute(code)
        assert result["status"] == status, result
        box = self.box
        box.memory.count += 1
        box.settled, box.last_execution = None, result["id"]
        if status == "ok":
            assert result["execution_count"] == box.memory.count
        if box.auto:
            self.await_automatic()
        return result

    def await_automatic(self) -> None:
        plan = self.box.plan_automatic()
        if plan.full:
            return
        found: list[str] = []

        def is_there() -> bool:
            found[:] = [
                one["id"]
                for one in self.listed()
                if one["automatic"] and one["execution"] == self.box.last_execution
            ]
            return bool(found)

        wait_until(is_there, 30, "an automatic checkpoint")
        self.box.add(found[0], None, plan.victim, automatic=True)

    def listed(self) -> list[dict]:
        return self.ask("GET", "/checkpoints")[1]["checkpoints"]

    def look(self, actions: list, end: str = "") -> None:
        """A cell, and what it sees of memory and files."""
        cell = Cell(self.box)
        for name, arguments in actions:
            getattr(cell, name)(*arguments)
        if end:
            self.run(cell.code(end), "error")
            return
        # Before the run: an automatic checkpoint is made in it, and nothing that it changes is shown.
        expected = json.loads(json.dumps(self.box.state(cell.drawn)))
        seen = json.loads(self.run(cell.code("look()"))["stdout"])
        known = [one for one, drawn in zip(seen["drawn"], cell.drawn, strict=True) if drawn is not None]
        assert known == [drawn for drawn in cell.drawn if drawn is not None]
        unknown = {"drawn"} if expected["random"] else {"drawn", "random"}
        assert {**seen, **dict.fromkeys(unknown)} == {**expected, **dict.fromkeys(unknown)}

    def check_tree(self) -> None:
        seen = [
            {**{name: one[name] for name in one if name in ("id", "parent", "label", "automatic")},
             **{name: one[name] for name in ("execution", "execution_count", "file_bytes")},
             "count": one["files"]["count"]}
            for one in self.listed()
        ]  # fmt: skip
        assert seen == self.box.tree()

    def took(self, plan: Plan, ident: str, evicted: list[str], label: str | None = None) -> None:
        """The server has kept the state that is there."""
        if plan.same is not None:
            assert (ident, evicted) == (plan.same.id, [])
            plan.same.automatic = False  # a client has asked for it now
            return
        assert self.box.find(ident) is None
        assert evicted == ([plan.victim.id] if plan.victim else [])
        self.box.add(ident, label, plan.victim)


class TimeTravel(RuleBasedStateMachine):
    server: ClassVar[Server]
    box_type: ClassVar[type[Box]] = Box
    counted: ClassVar[Counter]

    def __init__(self) -> None:
        super().__init__()
        self.twins: list[Twin] = []
        self.fresh = 0

    def pick(self, number: int) -> Twin:
        return self.twins[number % len(self.twins)]

    def pick_mark(self, which: int) -> tuple[Twin, Mark]:
        pairs = [(twin, mark) for twin in self.twins for mark in twin.box.marks]
        return pairs[which % len(pairs)]

    def has_marks(self) -> bool:
        return any(twin.box.marks for twin in self.twins)

    def note(self, what: str) -> None:
        self.counted[what] += 1

    @initialize(auto=st.sampled_from((False, False, True)))
    def begin(self, auto: bool) -> None:
        body = {
            "checkpoints": {"auto": "each" if auto else "off", "branches": True},
            "limits": {"consecutive_failures": 0},
        }
        answer = self.server.post("/v1/sessions", body)
        assert answer.status_code == 201, answer.text
        self.twins.append(Twin(Session(self.server, answer.json()), self.box_type(auto)))
        self.twins[0].look([("seed", (5,))])

    # --- cells and files

    @rule(number=ANY, cells=st.lists(ACTIONS, min_size=1, max_size=3))
    def run(self, number: int, cells: list) -> None:
        for actions in cells:
            self.note("cell")
            self.pick(number).look(actions)

    @rule(number=ANY, actions=ACTIONS, compiles=st.booleans())
    def fail(self, number: int, actions: list, compiles: bool) -> None:
        """What a cell did before it failed stays. One that does not compile does nothing."""
        self.note("failing cell" if compiles else "broken cell")
        if compiles:
            self.pick(number).look(actions, "raise ValueError('planned')")
        else:
            self.pick(number).run("alpha = 'never'\ndef (", "error")

    @rule(number=ANY, path=PATH, text=TEXT)
    def put(self, number: int, path: str, text: str) -> None:
        files = self.pick(number).box.files
        held = not parent_of(path) or files.get(parent_of(path), Entry("", 0, "")).kind == "directory"
        if held and files.get(path, Entry("file", 0, "")).kind == "file":
            self.note("put")
            session = self.pick(number).session
            answer = self.server.request("PUT", f"{session.path}/files/{path}", data=text.encode())
            assert answer.status_code in (200, 201, 204), answer.text
            files[path] = Entry("file", 0o644, text)

    # --- deaths

    @precondition(lambda self: self.fresh < FRESH_MAX)
    @rule(number=ANY, actions=ACTIONS)
    def die(self, number: int, actions: list) -> None:
        self.fresh += 1
        twin = self.pick(number)
        box = twin.box
        cell = Cell(box)
        for name, arguments in actions:
            getattr(cell, name)(*arguments)
        newest = box.marks[-1] if box.auto and box.marks else None
        dead = twin.session.execute(cell.code("os.kill(os.getpid(), 11)"))
        assert (dead["status"], dead["state"]) == ("dead", "restored" if newest else "lost"), dead
        box.last_execution = dead["id"]
        if newest:
            self.note("revived")
            assert dead["restored"]["checkpoint"] == newest.id
            assert dead["restored"]["undone"][-1] == dead["id"]
            box.revive(newest)
        else:
            self.note("died")
            box.begin_anew()
        wait_until(lambda: twin.session.fetch()["state"] == "idle", 60, "an interpreter goes on")

    @precondition(lambda self: self.fresh < FRESH_MAX)
    @rule(number=ANY)
    def restart(self, number: int) -> None:
        self.note("restart")
        self.fresh += 1
        assert self.pick(number).ask("POST", "/restart", {})[0] == 200
        self.pick(number).box.begin_anew()

    # --- checkpoints

    @rule(number=ANY, label=LABEL)
    def keep(self, number: int, label: str | None) -> None:
        twin = self.pick(number)
        plan = twin.box.plan(label)
        status, made = twin.ask("POST", "/checkpoints", {"label": label} if label else {})
        if plan.full:
            self.note("full")
            assert status == 429, made
            return
        self.note("unchanged" if plan.same else "kept")
        assert (status, made["unchanged"]) == ((200, True) if plan.same else (201, False)), made
        twin.took(plan, made["id"], made["evicted"], label)
        assert made["lost"] == [] and made["files"]["unkept"] == []

    @precondition(has_marks)
    @rule(which=ANY, discard=st.booleans(), reseed=st.booleans(), actions=ACTIONS)
    def roll_back(self, which: int, discard: bool, reseed: bool, actions: list) -> None:
        twin, mark = self.pick_mark(which)
        if actions:
            twin.look(actions)
            # An automatic one has given way to that of the cell.
            mark = twin.box.find(mark.id) or twin.box.marks[-1]
        plan = twin.box.plan(None, kept=mark.id)
        body = {"checkpoint": mark.id, "discard": discard, "reseed": reseed}
        status, back = twin.ask("POST", "/rollback", body)
        if plan.full and not discard:
            self.note("no room for what is left")
            assert status == 429, back
            return
        self.note("discarded" if discard else "rolled back")
        assert status == 200 and back["files"]["failed"] == [] and back["lost"] == [], back
        if discard:
            assert (back["left_as"], back["evicted"]) == (None, [])
        else:
            twin.took(plan, back["left_as"], back["evicted"])
        twin.box.go_back(mark, reseed)

    @precondition(has_marks)
    @rule(which=ANY)
    def let_go(self, which: int) -> None:
        self.note("let go")
        twin, mark = self.pick_mark(which)
        assert twin.ask("DELETE", f"/checkpoints/{mark.id}")[0] == 204
        twin.box.remove(mark, "deleted")

    @rule(number=ANY)
    def ask_for_one_that_is_gone(self, number: int) -> None:
        twin = self.pick(number)
        for ident, why in list(twin.box.gone.items())[-2:]:
            self.note("gone")
            status, problem = twin.ask("POST", "/rollback", {"checkpoint": ident})
            assert (status, problem["reason"]) == (410, why), problem

    @rule(number=ANY)
    def list_them(self, number: int) -> None:
        self.note("listed")
        self.pick(number).check_tree()

    @precondition(has_marks)
    @rule(which=ANY)
    def compare_with_now(self, which: int) -> None:
        self.note("compared")
        twin, mark = self.pick_mark(which)
        assert self.differences(twin, mark.id) == compare(mark.files, twin.box.files)

    @staticmethod
    def differences(twin: Twin, against: str) -> dict[str, str]:
        status, answer = twin.ask("GET", f"/diff?against={against}")
        assert status == 200 and answer["complete"] and answer["next"] is None, answer
        return {one["path"]: one["change"] for one in answer["files"]}

    # --- branches

    @staticmethod
    def depth(box: Box) -> int:
        return 0 if box.parent is None else 1 + TimeTravel.depth(box.parent)

    @precondition(lambda self: len(self.twins) < SESSIONS_MAX)
    @rule(number=ANY, which=ANY, now=st.booleans(), count=st.integers(1, 2), reseed=st.booleans())
    def branch(self, number: int, which: int, now: bool, count: int, reseed: bool) -> None:
        twin = self.pick(number)
        box = twin.box
        if self.depth(box) >= DEPTH_MAX:
            return
        mark = None if now or not box.marks else box.marks[which % len(box.marks)]
        plan = box.plan(None)
        body = {"count": count, "reseed": reseed, **({} if mark is None else {"from": mark.id})}
        status, answer = twin.ask("POST", "/branches", body)
        if mark is None and plan.full:
            assert status == 429, answer
            return
        self.note("branch from now" if mark is None else "branch")
        assert status == 201, answer
        if mark is None:
            twin.took(plan, answer["checkpoint"], answer["evicted"])
            mark = box.find(answer["checkpoint"])
        assert mark is not None and answer["checkpoint"] == mark.id
        for item in answer["branches"]:
            assert item["session"]["branch_of"]["checkpoint"] == mark.id, item
            self.twins.append(Twin(Session(self.server, item["session"]), box.branch(mark, reseed)))
        assert len(answer["branches"]) == count

    def with_parents(self) -> list[tuple[Twin, Twin]]:
        """The branches whose parents are there."""
        alive = {id(twin.box): twin for twin in self.twins}
        return [(twin, alive[id(twin.box.parent)]) for twin in self.twins if id(twin.box.parent) in alive]

    @precondition(with_parents)
    @rule(number=ANY)
    def compare_with_parent(self, number: int) -> None:
        self.note("compared with parent")
        pairs = self.with_parents()
        branch, parent = pairs[number % len(pairs)]
        assert self.differences(branch, parent.session.info["id"]) == compare(parent.box.files, branch.box.files)

    @precondition(with_parents)
    @rule(
        number=ANY,
        write=st.tuples(PATH, TEXT, MODE),
        paths=st.one_of(st.none(), st.lists(st.sampled_from(POOL), min_size=1, max_size=4, unique=True)),
        force=st.booleans(),
    )
    def merge(self, number: int, write: tuple, paths: list[str] | None, force: bool) -> None:
        pairs = self.with_parents()
        branch, parent = pairs[number % len(pairs)]
        branch.look([("write", write)])
        if branch.box.base.get(JOURNAL) != branch.box.files.get(JOURNAL):
            paths = paths or list(TOPS)  # a merge would put another file in place of the open one
        merge = Merge(parent.box, branch.box, paths)
        order = {"from": branch.session.info["id"], "force": force, **({"paths": paths} if paths else {})}
        status, answer = parent.ask("POST", "/merge", order)
        listed = "overruled"
        if merge.conflicts and not force:
            assert (status, answer["type"]) == (409, "/problems/merge-conflict"), answer
            listed = "conflicts"
        else:
            assert status == 200, answer
            assert {one["path"]: one["change"] for one in answer["files"]} == merge.changes()
            assert sorted(answer["unmatched"]) == merge.unmatched and answer["skipped"] == []
            merge.do(parent.box, branch.box)
        self.note(listed if merge.conflicts else "merged" if merge.steps else "nothing to merge")
        seen = {one["path"]: (one["here"], one["branch"]) for one in answer[listed]}
        assert seen == merge.conflicts

    @precondition(lambda self: len(self.twins) > 2)
    @rule(number=ANY)
    def end(self, number: int) -> None:
        self.note("ended")
        twin = self.pick(number)
        self.twins.remove(twin)
        assert twin.session.delete() == 204

    def teardown(self) -> None:
        try:
            for twin in self.twins:
                twin.look([])
                twin.check_tree()
        finally:
            for twin in self.twins:
                twin.session.delete()
