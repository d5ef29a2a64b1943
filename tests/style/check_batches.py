# SPDX-License-Identifier: Apache-2.0
"""Names in anonymous namespaces, which must be unique within a library.

The presets that compile from nothing put all sources of a target into one translation unit (CMake's
unity builds). Two sources that keep a private name each would then define it twice. This check says so
before a compiler does, and it names both places.
"""

import re
from collections import defaultdict
from collections.abc import Iterator

# Macros that look like functions: their expansions are unique.
MACROS = {"TEST_CASE", "TEST_CASE_METHOD", "TEMPLATE_TEST_CASE", "BENCHMARK", "PYBIND11_EMBEDDED_MODULE"}
TYPE = re.compile(r"(?:template\s*<.*?>\s*)?(?:struct|class|enum(?:\s+class)?|union)\s+(\w+)\s*(?:final\s*)?[:{;]")
ALIAS = re.compile(r"(?:using|namespace)\s+(\w+)\s*=")
BRACE = re.compile("[{}]")
FUNCTION_HEAD = re.compile(r"(operator\s*\S+|~?\w+)\s*\($")
# Folders whose libraries take sources of several folders beneath them.
SPANNING = (
    "kernel-manager/api",
    "kernel-manager/cli",
    "kernel-manager/egress",
    "kernel-manager/execution",
    "kernel-manager/http",
    "kernels/cpp",
    "sandbox",
)
VARIABLE = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|\{|;)")


def anonymous_bodies(code: str) -> Iterator[tuple[int, str]]:
    """The insides of `namespace { … }`, each with the line it begins on."""
    for found in re.finditer(r"\bnamespace\s*\{", code):
        depth, at = 1, len(code)
        for brace in BRACE.finditer(code, found.end()):
            depth += 1 if brace.group() == "{" else -1
            if depth == 0:
                at = brace.end()
                break
        yield code.count("\n", 0, found.end()) + 1, code[found.end() : at - 1]


def declarations(body: str) -> Iterator[tuple[int, str]]:
    """The declarations at the outermost level of a body, bodies of functions and types emptied."""
    depth, line, begin, text = 0, 0, 0, ""
    for character in body:
        if depth == 0 and character != "}":
            if not text.strip():
                begin = line
            text += character
        line += character == "\n"
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                text += "}"
                if re.search(r"\)[^;={}()]*\{\}$", text):  # A function ends with its body.
                    yield begin, text
                    text = ""
        elif character == ";" and depth == 0:
            yield begin, text
            text = ""


def name_of(declaration: str) -> str | None:
    text = re.sub(r"^\s*#.*$|\[\[.*?\]\]|^extern \"C\"", "", declaration, flags=re.M).strip()
    if not text or text.startswith(("using namespace", "static_assert", "friend")):
        return None
    if found := ALIAS.match(text) or TYPE.match(text):
        return found.group(1)
    if text.startswith("using "):
        return None
    text = re.sub(r"^template\s*<[^>]*>+\s*", "", text)
    value, bracket = re.search(r"[={]", text), text.find("(")
    if bracket >= 0 and (value is None or bracket < value.start()):
        found = FUNCTION_HEAD.search(text[: bracket + 1])
    else:
        found = VARIABLE.search(text)
    return found.group(1) if found and found.group(1) not in MACROS else None


def check_batches(codes: dict[str, str]) -> Iterator[tuple[str, int, str]]:
    """Findings (file, line, message) over the C++ texts, literals and comments emptied, by file name."""
    owners: dict[tuple[str, str], dict[str, tuple[int, str]]] = defaultdict(dict)
    for name, code in codes.items():
        if not name.endswith(".cpp"):
            continue
        folder = name.rpartition("/")[0]
        folder = next((one for one in SPANNING if f"{folder}/".startswith(f"{one}/")), folder)
        for first, body in anonymous_bodies(code):
            for line, declaration in declarations(body):
                if private := name_of(declaration):
                    alias = ALIAS.match(declaration.strip())
                    owners[folder, private].setdefault(
                        name, (first + line, declaration.strip() if alias else name)
                    )
    for (_, private), places in sorted(owners.items()):
        if len({text for _, text in places.values()}) > 1:
            for name, (line, _) in sorted(places.items()):
                others = ", ".join(sorted(other for other in places if other != name))
                yield name, line, f"the private name {private} is also in {others}; share it or rename it"
