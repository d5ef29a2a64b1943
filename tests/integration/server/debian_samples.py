# SPDX-License-Identifier: Apache-2.0
"""Packages of Debian for tests: those that work, and those that must be refused."""

import subprocess
import tarfile
from pathlib import Path

from debian_archive import DebianArchive, Member

LIBRARIES = "usr/lib/x86_64-linux-gnu"
LIBRARY = 'const char* greeting(void) { return "hello from a library"; }\n'
PROGRAM = """
#include <stdio.h>
#include <unistd.h>
const char* greeting(void);
int main(void) { printf("%s %d\\n", greeting(), (int)geteuid()); return 0; }
"""


def compile_to(folder: Path, name: str, text: str, *flags: str) -> bytes:
    source = folder / f"{name}.c"
    source.write_text(text, encoding="utf-8")
    subprocess.run(["gcc", "-o", name, source.name, *flags], cwd=folder, check=True)
    return (folder / name).read_bytes()


def script(body: str) -> str:
    return f"#!/bin/sh\nset -e\n{body}"


def say(words: str) -> Member:
    return Member(f"#!/bin/sh\necho {words}\n".encode(), mode=0o755)


def offer(name: str, of: str, priority: int) -> str:
    return f"update-alternatives --install /usr/bin/{name} {name} \\\n   /usr/bin/{of} {priority}\n"


def publish_good(archive: DebianArchive, mark: Path) -> None:
    library = compile_to(archive.folder, "libgreet.so.1", LIBRARY, "-shared", "-fPIC", "-Wl,-soname,libgreet.so.1")
    greet = compile_to(archive.folder, "greet", PROGRAM, "libgreet.so.1")
    archive.publish("libgreet1", "1.0", {f"./{LIBRARIES}/libgreet.so.1": library}, Depends="libc6")
    archive.publish(
        "greet",
        "1:1.0-1",
        {
            "./usr/bin/greet": Member(greet, mode=0o755),
            "./usr/bin/greet-as-root": Member(greet, mode=0o4755),
            "./bin/greet-merged": say("merged"),
            "./usr/share/greet/words": "good morning\n",
            "./usr/share/doc/greet/copyright": "all rights\n",
            "./etc/greet/greet.conf": "polite = yes\n",
            "./etc/passwd": "root::0:0::/:/bin/sh\n",
            "./opt/greet/bin/greet-opt": say("opt"),
            "./var/lib/greet/state": "no\n",
            "./usr/lib/greet/secret": Member(b"no\n", mode=0o600),
            "./usr/lib/greet/device": Member(kind=tarfile.CHRTYPE),
        },
        {"preinst": script(f"touch {mark}\n"), "postinst": script(f"touch {mark}\nldconfig\n")},
        Depends="libgreet1 (>= 1.0), libc6",
    )
    archive.publish("say-plain", "1", {"./usr/bin/say-plain": say("plain")}, {"postinst": script(offer("say", "say-plain", 10))})
    archive.publish("say-fancy", "1", {"./usr/bin/say-fancy": say("fancy")}, {"postinst": script(offer("say", "say-fancy", 50) + offer("awk", "say-fancy", 999))})
    odd = compile_to(archive.folder, "libodd.so.1", LIBRARY, "-shared", "-fPIC", "-Wl,-soname,libodd.so.1")
    play = compile_to(archive.folder, "odd-game", PROGRAM, "libodd.so.1")
    archive.publish(
        "odd",
        "1",
        {
            "./usr/lib/odd/libodd.so.1": odd,
            "./etc/ld.so.conf.d/odd.conf": "# where it is\n/usr/lib/odd\n/usr/lib/absent\nrelative\n",
            "./usr/games/odd-game": Member(play, mode=0o755),
        },
    )


def publish_bad(archive: DebianArchive, outside: Path) -> None:
    link = Member(kind=tarfile.SYMTYPE, link=str(outside))
    archive.publish("bash", "99", {"./usr/bin/bash": say("another bash")})
    archive.publish("needs-bash", "1", {}, Depends="bash (>= 99)")
    archive.publish("needs-nothing-there", "1", {}, Depends="nothing-there")
    archive.publish("one", "1", {}, Conflicts="other")
    archive.publish("other", "1", {})
    archive.publish("climbs", "1", {"./usr/../../../../escaped": "escaped\n"})
    archive.publish("absolute", "1", {f"{outside}/escaped": "escaped\n"})
    archive.publish("trap", "1", {"./usr/share/trap": link})
    archive.publish("trapped", "1", {"./usr/share/trap/escaped": "escaped\n"}, Depends="trap")
    archive.publish("masked", "1", {}, said={"Package": "bash"})
    archive.publish("i386-only", "1", {}, architecture="i386")
    many = {f"./etc/folder-{number}/x": "x" for number in range(65)}
    archive.publish("spread", "1", many)


# What is asked for, and what the refusal says.
REFUSED = [
    ("no-such-package", "Unable to locate package no-such-package"),
    ("gree.", "Unable to locate package gree."),
    ("needs-nothing-there", "nothing-there"),
    ("needs-bash", "it needs bash 99, and sessions have 5."),
    ("bash=99", "it needs bash 99, and sessions have 5."),
    ("greet=7", "Version '7' for 'greet' was not found"),
    ("one,other", "Conflicts: other"),
    ("climbs", "leads out of it"),
    ("absolute", "a path that is absolute"),
    ("trapped", "is no folder"),
    ("masked", "it says that it is bash 1"),
    ("i386-only", "i386-only"),
    ("spread", "65 entries in /etc and /opt"),
    ("greet-", "is no name of a package of Debian"),
    ("./greet.deb", "is no name of a package of Debian"),
    ("greet/stable", "is no name of a package of Debian"),
    ("--help", "is no name of a package of Debian"),
    ("greet=1,greet=2", "is asked for in two versions"),
]
