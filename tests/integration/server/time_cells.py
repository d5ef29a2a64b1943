# SPDX-License-Identifier: Apache-2.0
"""Cells of random programs, for a session and for its model (time_model.py) at once: each call adds a
line to the code and does to the model what that line does.
"""

import copy
import random

from time_model import JOURNAL, PLACES, STRIDE, Box, Entry, parent_of

NAMES = ("alpha", "beta", "gamma")
# Where programs put files. Among them are directories of others.
POOL = ("a", "b", "d", "e", "d/a", "d/b", "e/d", "e/d/a")
TOPS = ("a", "b", "d", "e")

# The first cell of a fresh interpreter.
PRELUDE = f"""
import json, os, random, shutil
def count():
    n = 0
    while True:
        yield n
        n += 1
numbers = count(); _ = next(numbers)
for place in {PLACES!r}: os.makedirs('/workspace/' + place, exist_ok=True)
open('/workspace/{JOURNAL}', 'ab').close()
journal = open('/workspace/{JOURNAL}', 'r+b', buffering=0)
os.chdir('/workspace/{PLACES[0]}'); os.environ['STAGE'] = 'begun'
def describe(path):
    mode = os.lstat(path).st_mode & 0o777
    if os.path.islink(path): return ['link', mode, os.readlink(path)]
    if os.path.isdir(path): return ['directory', mode, '']
    with open(path) as file: return ['file', mode, file.read()]
def look():
    paths = [os.path.join(folder, name) for folder, *names in os.walk('/workspace') for name in sum(names, [])]
    print(json.dumps({{
        'values': {{name: globals()[name] for name in {NAMES!r} if name in globals()}},
        'number': numbers.gi_frame.f_locals['n'], 'stage': os.environ['STAGE'], 'place': os.getcwd(),
        'position': journal.tell(), 'drawn': drawn, 'random': random.getstate()[1][::{STRIDE}],
        'files': {{path[len('/workspace/'):]: describe(path) for path in paths}},
    }}))
"""


class Cell:
    """A cell that grows. What cannot be done in the state that is there is left out."""

    def __init__(self, box: Box) -> None:
        self.memory, self.files = box.memory, box.files
        self.lines = ["drawn = []"]
        self.drawn: list[float | None] = []
        if not self.memory.prepared:
            self.lines.append(PRELUDE)
            self.memory.prepared = True
            for path in ("keep", *PLACES):
                self.files.setdefault(path, Entry("directory", 0o755, ""))
            self.files.setdefault(JOURNAL, Entry("file", 0o644, ""))

    def code(self, end: str) -> str:
        return "\n".join([*self.lines, end])

    # --- memory

    def define(self, name: str, value: object) -> None:
        self.lines.append(f"{name} = {value!r}")
        self.memory.values[name] = copy.deepcopy(value)

    def alias(self, name: str, other: str) -> None:
        if other in self.memory.values:
            self.lines.append(f"{name} = {other}")
            self.memory.values[name] = self.memory.values[other]

    def grow(self, name: str, value: int) -> None:
        if isinstance(found := self.memory.values.get(name), list):
            self.lines.append(f"{name}.append({value})")
            found.append(value)

    def forget(self, name: str) -> None:
        if name in self.memory.values:
            self.lines.append(f"del {name}")
            del self.memory.values[name]

    def step(self, times: int) -> None:
        self.lines.append(f"for _ in range({times}): next(numbers)")
        self.memory.number += times

    def set_stage(self, text: str) -> None:
        self.lines.append(f"os.environ['STAGE'] = {text!r}")
        self.memory.stage = text

    def go(self, place: str) -> None:
        self.lines.append(f"os.chdir('/workspace/{place}')")
        self.memory.place = place

    def seed(self, number: int) -> None:
        self.lines.append(f"random.seed({number})")
        self.memory.random = random.Random(number).getstate()

    def draw(self) -> None:
        self.lines.append("drawn.append(random.random())")
        drawn = None
        if self.memory.random is not None:
            generator = random.Random()
            generator.setstate(self.memory.random)
            drawn = generator.random()
            self.memory.random = generator.getstate()
        self.drawn.append(drawn)

    # --- the file that is open

    def note(self, text: str) -> None:
        self.lines.append(f"_ = journal.write({text.encode()!r})")
        at, before = self.memory.position, self.files[JOURNAL]
        whole = before.text.ljust(at, "\0") if text else before.text
        self.files[JOURNAL] = before._replace(text=whole[:at] + text + whole[at + len(text) :])
        self.memory.position += len(text)

    def seek(self, position: int) -> None:
        position = min(position, len(self.files[JOURNAL].text))
        self.lines.append(f"_ = journal.seek({position})")
        self.memory.position = position

    # --- files

    def _can_hold(self, path: str) -> bool:
        parent = parent_of(path)
        return not parent or (parent in self.files and self.files[parent].kind == "directory")

    def _is(self, path: str, *kinds: str) -> bool:
        return path in self.files and self.files[path].kind in kinds

    def write(self, path: str, text: str, mode: int) -> None:
        if self._can_hold(path) and not self._is(path, "directory", "link"):
            self.lines.append(f"with open('/workspace/{path}', 'w') as file: _ = file.write({text!r})")
            self.lines.append(f"os.chmod('/workspace/{path}', {mode})")
            self.files[path] = Entry("file", mode, text)

    def extend(self, path: str, text: str) -> None:
        if self._is(path, "file"):
            self.lines.append(f"with open('/workspace/{path}', 'a') as file: _ = file.write({text!r})")
            self.files[path] = self.files[path]._replace(text=self.files[path].text + text)

    def chmod(self, path: str, mode: int) -> None:
        if self._is(path, "file"):
            self.lines.append(f"os.chmod('/workspace/{path}', {mode})")
            self.files[path] = self.files[path]._replace(mode=mode)

    def make_directory(self, path: str) -> None:
        if self._can_hold(path) and path not in self.files:
            self.lines.append(f"os.mkdir('/workspace/{path}')")
            self.files[path] = Entry("directory", 0o755, "")

    def link(self, path: str, target: str) -> None:
        if self._can_hold(path) and path not in self.files:
            self.lines.append(f"os.symlink({target!r}, '/workspace/{path}')")
            self.files[path] = Entry("link", 0o777, target)

    def remove(self, path: str) -> None:
        if path in self.files:
            call = "shutil.rmtree" if self._is(path, "directory") else "os.unlink"
            self.lines.append(f"{call}('/workspace/{path}')")
            for one in [one for one in self.files if one == path or one.startswith(path + "/")]:
                del self.files[one]

    def move(self, path: str, to: str) -> None:
        inside = to == path or to.startswith(path + "/") or path.startswith(to + "/")
        if path not in self.files or inside or not self._can_hold(to):
            return
        if to in self.files and "directory" in (self.files[path].kind, self.files[to].kind):
            return
        self.lines.append(f"os.replace('/workspace/{path}', '/workspace/{to}')")
        for one in [one for one in self.files if one == path or one.startswith(path + "/")]:
            self.files[to + one[len(path) :]] = self.files.pop(one)
