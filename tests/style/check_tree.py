# SPDX-License-Identifier: Apache-2.0
"""House rules that no compiler checks, as a test over the source tree.

Every finding is one line, `file:line: what is wrong; what to do instead`. Each rule is a generator
over one file or over the tree; check_tree_test.py plants a violation of each.
"""

import ast
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from check_batches import check_batches
from check_classes import KNOWN, OWN_NAME, check_classes
from check_files import check_files, names_of
from check_folders import KNOWN as KNOWN_FOLDERS
from check_folders import check_folders
from check_suites import check_suites
from rooms import may_include

LINES_MAX = 400
SKIPPED_FOLDERS = {".git", "build", "__pycache__", ".pytest_cache", ".ipynb_checkpoints", "corpus"}
SKIPPED_FOLDERS |= {"node_modules", ".venv"}  # check_files.py sees to it that they are not committed
TEXT_SUFFIXES = {
    "",
    ".cpp",
    ".hpp",
    ".h",
    ".py",
    ".sh",
    ".md",
    ".txt",
    ".cmake",
    ".json",
    ".toml",
    ".yml",
    ".yaml",
    ".in",
    ".lock",
    ".ipynb",
}
CPP = {".cpp", ".hpp", ".h"}

# Who may include whom: the table in rooms.py. Tests may include everything.
LAYERS: dict[str, set[str] | None] = {**may_include(), "tests": None}

# Headers of libraries that only these folders wrap.
WRAPPED = {
    r"zmq\.hp?p?": ("kernel-manager/jupyter", "tests"),
    r"openssl/.*": (
        "protocol",
        "kernel-manager/egress",
        "kernel-manager/image",
        "kernel-manager/http",
        "tests",
    ),
    r"seccomp\.h": ("sandbox", "tests"),
    r"SQLiteCpp/.*": ("kernel-manager/store", "tests"),
    r"archive(_entry)?\.h": ("kernel-manager/api", "tests"),
    r"linux/landlock\.h": ("sandbox", "tests"),
    r"sys/capability\.h": ("sandbox", "tests"),
    r"(clang|llvm)/.*": ("kernels/cpp",),
    r"spdlog/.*": ("kernel-manager/cli", "tests"),
    r"yaml-cpp/.*": ("kernel-manager/environments", "tests"),
}


@dataclass(frozen=True)
class Ban:
    """A pattern banned in C++ code (not comments or literals), what instead, where allowed."""

    pattern: str
    instead: str
    allowed: tuple[str, ...] = ()


BANS = (
    Ban(
        r"\b(sleep_for|sleep_until|usleep|nanosleep)\s*\(",
        "wait on a descriptor, a state or a deadline",
    ),
    Ban(
        r"(?<![.>\w])(std::)?system\s*\(|\bpopen\s*\(",
        "start programs through sandbox/ or posix_spawn",
    ),
    Ban(
        r"\bcatch\s*\(\s*\.\.\.\s*\)",
        "catch the library's exception type where it is wrapped",
        ("kernel-manager/cli/main.cpp", "kernels/cpp/", "kernels/python/"),
    ),
    Ban(r"^using namespace (?!\S*literals\b)", "name what you use", ("tests/",)),
    Ban(
        r"\bstd::(cout|cerr|clog)\b",
        "answer the caller, or log through what was handed in",
        # Inside the sandbox there is no log: the server reads the kernel's stderr.
        (
            "kernel-manager/cli/",
            "kernels/common/",
            "kernels/cpp/",
            "tests/",
        ),
    ),
    Ban(
        r"(?<![.>\w:])(v?fork|clone)\s*\(\s*\)",
        "start processes through sandbox/",
        ("sandbox/", "protocol/support/", "kernels/common/", "tests/"),
    ),
    Ban(r"\bassert\s*\(", "return an Error, or abort on purpose: releases compile assert away"),
)

CMAKE_BANS = {
    r"^\s*(include_directories|add_definitions|add_compile_options|link_libraries)\s*\(": (
        "set it on the target (target_*)"
    ),
    r"\bFetchContent|\bExternalProject": "use Debian's package (scripts/lib/packages.txt)",
    r"\bGLOB(_RECURSE)?\b": "list the sources",
    r"\bCMAKE_CXX_FLAGS\b": "use cellkeep_options in cmake/CellkeepOptions.cmake",
}

# Written with character classes, so that this file does not name what it bans.
PLACES = {
    r"p[y]pi\.(org|python)|p[y]thonhosted\.org|registry\.n[p]mjs|c[r]ates\.io": (
        "name the package, never a registry's host"
    ),
    r"(?<![\w.-])/(w[o]rk|r[o]ot)/(?!\.)": "make the path relative to the project",
}
PLACES_ALLOWED = ("tests/sandbox/",)
NOTE = re.compile(r"\b(T[O]DO|F[I]XME|X[X]X)\b")


# A client that a server has asked to wait before it tries again has nothing else to wait for.
SLEEP_ALLOWED = ("clients/python/src/", "clients/integrations/src/")


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class Source:
    """One text file of the tree: its name relative to the root, its lines, and for C++ its code."""

    def __init__(self, root: Path, path: Path) -> None:
        self.name = path.relative_to(root).as_posix()
        self.suffix = path.suffix
        self.text = path.read_text(encoding="utf-8")
        self.lines = self.text.split("\n")
        self.code = blank_literals(self.text).split("\n") if path.suffix in CPP else []

    def within(self, prefixes: tuple[str, ...]) -> bool:
        return self.name.startswith(prefixes)


def blank_literals(text: str) -> str:
    """The C++ text with comments, strings and characters emptied, line for line."""
    token = re.compile(
        r'R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"|//[^\n]*|/\*.*?\*/'
        r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z])\'(?:\\.|[^\'\\\n])*\'',
        re.DOTALL,
    )
    return token.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def files_below(root: Path) -> Iterator[Path]:
    """Without a look into skipped folders: a build has a hundred thousand files."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        yield from (Path(folder, name) for name in sorted(set(names) - SKIPPED_FOLDERS))


def sources(root: Path) -> list[Source]:
    found = []
    for path in files_below(root):
        if path.suffix in TEXT_SUFFIXES and path.is_file():
            try:
                found.append(Source(root, path))
            except UnicodeDecodeError:
                continue  # A fuzzer's seed or a picture: no text, no rules.
    return found


def layer_of(name: str) -> str | None:
    return max((layer for layer in LAYERS if name.startswith(layer + "/")), key=len, default=None)


def check_includes(source: Source, names: set[str]) -> Iterator[Finding]:
    own = layer_of(source.name)
    for number, line in enumerate(source.lines, 1):
        if "#" not in line:
            continue
        if found := re.match(r'\s*#\s*include\s+"([^"]+)"', line):
            target = found.group(1)
            layer = layer_of(target)
            if target not in names:
                yield Finding(
                    source.name, number, f'"{target}" is not in the tree; name it from the root'
                )
            elif own is not None and LAYERS[own] is not None and layer not in LAYERS[own]:
                allowed = ", ".join(sorted(LAYERS[own]))
                yield Finding(
                    source.name, number, f"{own} may not include {layer}; it may include {allowed}"
                )
        elif found := re.match(r"\s*#\s*include\s+<([^>]+)>", line):
            for header, owners in WRAPPED.items():
                wrapped = re.fullmatch(header, found.group(1))
                if wrapped and not source.within(tuple(owner + "/" for owner in owners)):
                    yield Finding(
                        source.name,
                        number,
                        f"<{found.group(1)}> is wrapped by {', '.join(owners)}; use that",
                    )


def check_bans(source: Source) -> Iterator[Finding]:
    code = "\n".join(source.code)
    suspected = [ban for ban in BANS if re.search(ban.pattern, code, re.MULTILINE)]
    for number, line in enumerate(source.code if suspected else [], 1):
        for ban in suspected:
            if (found := re.search(ban.pattern, line)) and not (
                ban.allowed and source.within(ban.allowed)
            ):
                yield Finding(
                    source.name, number, f"'{found.group().strip()}' is banned; {ban.instead}"
                )
    silences = source.code and "NOLINT" in source.text
    for number, line in enumerate(source.lines if silences else [], 1):
        if (
            re.search(r"\bNOLINT\w*(?!\w*\()", line)
            and not re.search(r"\bNOLINT\w*\([\w.,\s-]+\)", line)
        ):
            yield Finding(
                source.name,
                number,
                "NOLINT without the check's name; write NOLINT(check-name): why",
            )


def check_cmake(source: Source) -> Iterator[Finding]:
    if not source.name.endswith(("CMakeLists.txt", ".cmake")):
        return
    for number, line in enumerate(source.lines, 1):
        for pattern, instead in CMAKE_BANS.items():
            if found := re.search(pattern, line.split("#")[0]):
                yield Finding(
                    source.name, number, f"'{found.group().strip()}' is banned; {instead}"
                )


def check_python(source: Source) -> Iterator[Finding]:
    if source.suffix != ".py":
        return
    try:
        tree = ast.parse(source.text)
    except SyntaxError as error:
        yield Finding(source.name, error.lineno or 1, f"does not parse: {error.msg}")
        return
    banned = {"os.system", "os.popen"}
    if not source.within(SLEEP_ALLOWED):
        banned.add("time.sleep")
    last_names = {name.split(".")[1] for name in banned}
    for node in ast.walk(tree):
        suspected = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in last_names
        if suspected and ast.unparse(node.func) in banned:
            yield Finding(
                source.name,
                node.lineno,
                f"{ast.unparse(node.func)} is banned; wait on an event, use subprocess.run",
            )
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield Finding(source.name, node.lineno, "bare except; name the exception")


def check_text(source: Source) -> Iterator[Finding]:
    noted = source.suffix != ".ipynb" and NOTE.search(source.text)
    places = {} if source.within(PLACES_ALLOWED) else PLACES
    suspected = [one for one in places.items() if re.search(one[0], source.text, re.MULTILINE)]
    for number, line in enumerate(source.lines, 1):
        if line != line.rstrip():
            yield Finding(source.name, number, "trailing whitespace; remove it")
        if source.code and "\t" in line:
            yield Finding(source.name, number, "a tab; indent with spaces")
        if noted and NOTE.search(line):
            yield Finding(source.name, number, "a note to self; do it or write an issue")
        for pattern, instead in suspected:
            if re.search(pattern, line):
                yield Finding(source.name, number, f"a place of one machine; {instead}")
    if source.text and not source.text.endswith("\n"):
        yield Finding(source.name, len(source.lines), "no newline at the end of the file; add it")
    is_script = source.suffix in {".py", ".sh"} or source.text.startswith("#!")
    if (source.code or is_script) and len(source.lines) - 1 > LINES_MAX:
        yield Finding(
            source.name,
            LINES_MAX + 1,
            f"{len(source.lines) - 1} lines, at most {LINES_MAX}; split it by noun",
        )
    if (source.code or is_script) and not any(
        "SPDX-License-Identifier: Apache-2.0" in line for line in source.lines[:2]
    ):
        yield Finding(source.name, 1, "no licence; begin with the SPDX-License-Identifier line")


def check_header(source: Source) -> Iterator[Finding]:
    if source.suffix != ".hpp":
        return
    if "#pragma once" not in source.lines:
        yield Finding(source.name, 1, "no include guard; add #pragma once")
    if not any(line.startswith("// ") and "SPDX" not in line for line in source.lines[:8]):
        yield Finding(source.name, 1, "no purpose; say what this header owns and must never do")


def check_built(every: list[Source]) -> Iterator[Finding]:
    """A .cpp that no CMakeLists.txt of its folder or one above names is never compiled."""
    lists = {source.name: source.text for source in every if source.name.endswith("CMakeLists.txt")}
    for source in every:
        if source.suffix != ".cpp":
            continue
        path = Path(source.name)
        named = any(
            re.search(
                rf"(?<![\w/.-]){re.escape(path.relative_to(folder).as_posix())}(?![\w.])",
                lists.get((folder / "CMakeLists.txt").as_posix(), ""),
            )
            for folder in path.parents
        )
        elsewhere = any(f"${{CMAKE_SOURCE_DIR}}/{source.name}" in text for text in lists.values())
        beside = lists.get((path.parent / "CMakeLists.txt").as_posix(), "")
        in_loop = re.search(
            rf"\b{re.escape(re.sub('_(test|fuzz)$', '', path.stem))}\b(?!\.)", beside
        )
        if not named and not elsewhere and not in_loop:
            yield Finding(source.name, 1, "in no CMakeLists.txt; list it or delete it")


def check_limits(every: list[Source]) -> Iterator[Finding]:
    """A limit that no test names is a limit that nothing holds."""
    tested = {
        name
        for s in every
        if s.name.startswith("tests/") and s.suffix in {".cpp", ".py"}
        for name in re.findall(r"\bk[A-Z]\w*", s.text)
    }
    for source in every:
        if source.name != "protocol/limits.hpp":
            continue
        for number, line in enumerate(source.code, 1):
            found = re.search(r"\bconstexpr\b[^=({]*\b(k[A-Z]\w*)", line)
            if found and found.group(1) not in tested:
                yield Finding(
                    source.name,
                    number,
                    f"{found.group(1)} is in no test; test it at the limit and one beyond",
                )


def check(root: Path) -> list[Finding]:
    every = sources(root)
    names = {source.name for source in every}
    findings: list[Finding] = []
    for source in every:
        if source.code:
            findings += check_includes(source, names)
        for rule in (check_bans, check_cmake, check_python, check_text, check_header):
            findings += rule(source)
    findings += check_built(every)
    findings += check_limits(every)
    lists = {source.name: source.text for source in every if source.name.endswith("CMakeLists.txt")}
    findings += [Finding(*finding) for finding in check_suites(lists, names)]
    findings += [Finding(name, 1, why) for name, why in check_files(root)]
    codes = {source.name: "\n".join(source.code) for source in every if source.code}
    findings += [Finding(*finding) for finding in check_batches(codes)]
    known = KNOWN if OWN_NAME in names else {}  # the exceptions are this tree's, not a planted one's
    findings += [Finding(*finding) for finding in check_classes(codes, known)]
    known_folders = KNOWN_FOLDERS if OWN_NAME in names else frozenset()
    findings += [Finding(*finding) for finding in check_folders(names_of(root), known_folders)]
    return sorted(findings, key=lambda finding: (finding.path, finding.line))


def main() -> int:
    findings = check(Path(sys.argv[1]).resolve())
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
