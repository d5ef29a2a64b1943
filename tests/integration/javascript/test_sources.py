# SPDX-License-Identifier: Apache-2.0
"""Rules for the driver's own sources that no other check knows."""

import re

import pytest
from driver_process import ROOT

DRIVER = ROOT / "kernels/javascript/driver"
# Of the main thread, which shares its global names with user code once it runs.
MAIN = sorted(
    path
    for path in DRIVER.glob("*.js")
    if path.name not in ("driver.js", "front.js", "compile.js", "scopes.js", "syntax.js", "typescript.js")
)
LINES_MAX = 400
GLOBALS = (
    "Array ArrayBuffer Atomics BigInt Boolean Buffer Date Error Function Int32Array JSON Map Math Number Object Promise "
    "Proxy RangeError ReferenceError Reflect RegExp Set SharedArrayBuffer String Symbol SyntaxError TextEncoder TypeError "
    "URL Uint8Array WeakMap WeakSet clearTimeout console process queueMicrotask setImmediate setTimeout"
).split()


def without_text(source):
    source = re.sub(r"^\s*//.*$", "", source, flags=re.MULTILINE)
    return re.sub(r"'(?:[^'\\\n]|\\.)*'|\s//.*", "", source)


@pytest.mark.parametrize("path", MAIN, ids=lambda path: path.name)
def test_globals_are_taken_before_user_code_can_change_them(path):
    source = without_text(path.read_text())
    taken = re.search(r"const \{([^}]*)\} =\s*globalThis;", source)
    names = {name.split(":")[0].strip() for name in taken.group(1).split(",")} if taken else set()
    rest = source.replace(taken.group(0), "") if taken else source
    used = {name for name in GLOBALS if re.search(rf"(?<![\w.$#]){name}\b(?!\s*:)", rest)}
    assert used - names == set()
    assert names - used - {"globalThis", ""} == set()


@pytest.mark.parametrize("path", sorted(DRIVER.iterdir()), ids=lambda path: path.name)
def test_sources_are_in_the_house_style(path):
    lines = path.read_text().splitlines()
    assert lines[0] == "// SPDX-License-Identifier: Apache-2.0"
    assert len(lines) <= LINES_MAX
    assert [line for line in lines if line != line.rstrip() or "\t" in line] == []
