# SPDX-License-Identifier: Apache-2.0
"""Two sessions that try to find each other, and do not. What is documented as left is shown, too.

The hider leaves traces of every kind. The same hunt that finds nothing in the seeker's session
finds all of it in the hider's own: the positive control.
"""

from collections.abc import Iterator

import pytest

from attacker import Attacker, call_number
from harness import Server

HIDE = """
import fcntl, mmap, multiprocessing.shared_memory as shared, os, socket, subprocess
for folder in ('/workspace', '/tmp', '/dev/shm'):
    with open(folder + '/cellkeep-trace', 'w') as file:
        file.write('here')
child = subprocess.Popen(['sleep', '1000'])
memory = os.memfd_create('cellkeep-trace')
os.write(memory, b'here')
block = shared.SharedMemory('cellkeep-block', create=True, size=4096)
abstract = socket.socket(socket.AF_UNIX)
abstract.bind('\\0cellkeep-trace'); abstract.listen()
named = socket.socket(socket.AF_UNIX)
named.bind('/tmp/cellkeep-socket'); named.listen()
tcp = socket.create_server(('127.0.0.1', 0))
tcp6 = socket.create_server(('::1', 0), family=socket.AF_INET6)
everywhere = socket.create_server(('0.0.0.0', 0))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(('127.0.0.1', 0)); udp.settimeout(0.0)
print([s.getsockname()[1] for s in (tcp, tcp6, everywhere, udp)], child.pid, memory, os.getpid())
"""

HUNT = """
import os, socket
def found(call):
    try:
        return bool(call())
    except OSError:
        return False
def knock(family, address):
    with socket.socket(family) as s:
        s.settimeout(10)
        s.connect(address)
        return True
"""

# trace: an expression that is true where the trace is. {ports}, {child}, {memory}, {pid}
TRACES = {
    "workspace file": "os.path.exists('/workspace/cellkeep-trace')",
    "temporary file": "os.path.exists('/tmp/cellkeep-trace')",
    "file in shared memory": "os.path.exists('/dev/shm/cellkeep-trace')",
    "POSIX shared memory": "os.path.exists('/dev/shm/cellkeep-block')",
    "memfd": "found(lambda: open('/proc/{pid}/fd/{memory}').read() == 'here')",
    "child process": (
        "found(lambda: b'sleep' in open('/proc/{child}/cmdline', 'rb').read())"
    ),
    "process by its command": (
        "any(found(lambda: b'sleep\\0' + b'1000' in open(f'/proc/{{p}}/cmdline', 'rb').read())\n"
        "    for p in os.listdir('/proc') if p.isdigit())"
    ),
    "abstract socket": "found(lambda: knock(socket.AF_UNIX, '\\0cellkeep-trace'))",
    "socket file": "found(lambda: knock(socket.AF_UNIX, '/tmp/cellkeep-socket'))",
    "TCP port": "found(lambda: knock(socket.AF_INET, ('127.0.0.1', {ports[0]})))",
    "TCP port of IPv6": "found(lambda: knock(socket.AF_INET6, ('::1', {ports[1]})))",
    "TCP port on every address": "found(lambda: knock(socket.AF_INET, ('127.0.0.9', {ports[2]})))",
    "UDP port": (
        # A port without a socket answers the second send with ECONNREFUSED.
        "found(lambda: (u := socket.socket(socket.AF_INET, socket.SOCK_DGRAM),\n"
        "    u.connect(('127.0.0.1', {ports[3]})), u.send(b'x'), u.send(b'x')))"
    ),
}


@pytest.fixture(scope="module")
def pair(server: Server) -> Iterator[tuple[Attacker, Attacker, dict]]:
    hider, seeker = Attacker(server), Attacker(server)
    ports, child, memory, pid = eval(
        hider.python(HIDE).replace("] ", "], ").replace(" ", ",").replace(",,", ",")
    )
    names = {"ports": ports, "child": child, "memory": memory, "pid": pid}
    yield hider, seeker, names
    assert hider.session.delete() == 204
    assert seeker.session.delete() == 204


@pytest.mark.parametrize("trace", TRACES)
def test_a_trace_is_found_at_home_and_not_next_door(
    pair: tuple[Attacker, Attacker, dict], trace: str
) -> None:
    hider, seeker, names = pair
    look = HUNT + f"print({TRACES[trace].format(**names)})"
    assert hider.python(look) == "True"
    assert seeker.python(look) == "False"


def test_no_signal_reaches_the_neighbour(pair: tuple[Attacker, Attacker, dict]) -> None:
    hider, seeker, names = pair
    hunt = (
        "import os, signal\nmine = {int(p) for p in os.listdir('/proc') if p.isdigit()} | {1}\n"
        "hit = 0\nfor pid in range(2, 6000):\n"
        "    if pid in mine: continue\n"
        "    try:\n        os.kill(pid, signal.SIGKILL); hit += 1\n"
        "    except ProcessLookupError: pass\nprint(hit)"
    )
    assert seeker.python(hunt) == "0"
    assert hider.python("print(child.poll())") == "None"
    assert hider.is_well()


def test_no_inter_process_object_by_key_is_shared(pair: tuple[Attacker, Attacker, dict]) -> None:
    # There is no trace by key: the filter refuses these calls in the hider's session, too.
    hider, seeker, _ = pair
    create, key = 0o1600, 0x63656C6C
    for call, more in {"shmget": (4096, create), "semget": (1, create), "msgget": (create,)}.items():
        assert hider.probe("syscall", f"call:{call}", key, *more) == "EPERM"
        assert seeker.probe("syscall", f"call:{call}", key, *more) == "EPERM"


@pytest.mark.parametrize("keyring", [-1, -2, -3, -4, -5])
def test_no_key_is_shared(pair: tuple[Attacker, Attacker, dict], keyring: int) -> None:
    hider, seeker, _ = pair
    assert hider.probe("plant_key", keyring, "cellkeep-trace") == "EPERM"
    assert seeker.probe("find_key", keyring, "cellkeep-trace") == "EPERM"
    assert seeker.python(
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"print(libc.syscall({call_number('keyctl')}, 10, {keyring}, b'user', b'x', 0),\n"
        "    ctypes.get_errno())"
    ) == "-1 1"


def test_their_namespaces_are_their_own(pair: tuple[Attacker, Attacker, dict]) -> None:
    hider, seeker, _ = pair
    look = (
        "import os\nprint({n: os.readlink('/proc/self/ns/' + n)\n"
        "    for n in ('user', 'pid', 'mnt', 'net', 'ipc', 'uts', 'cgroup')})"
    )
    mine, yours = eval(hider.python(look)), eval(seeker.python(look))
    for name, identity in mine.items():
        assert identity != yours[name], name


def test_reading_a_shared_file_leaves_no_time_stamp(pair: tuple[Attacker, Attacker, dict]) -> None:
    hider, seeker, _ = pair
    stamps = (
        "import os\ns = os.stat('/usr/bin/env')\nprint(s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns)"
    )
    before = seeker.python(stamps)
    hider.python("print(len(open('/usr/bin/env', 'rb').read()))")
    assert seeker.python(stamps) == before
    # And none can be set.
    assert hider.python(
        "import os\ntry: os.utime('/usr/bin/env', (1, 1))\nexcept OSError as e: print(e.errno in (1, 13, 30))"
    ) == "True"
    # The control: where it may, the same does leave one.
    assert hider.python(
        "import os\nopen('/tmp/stamp', 'w').close(); os.utime('/tmp/stamp', (1, 1))\n"
        "print(int(os.stat('/tmp/stamp').st_mtime))"
    ) == "1"


def test_a_watch_of_private_files_tells_nothing(pair: tuple[Attacker, Attacker, dict]) -> None:
    hider, seeker, _ = pair
    watch = (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "watch = libc.inotify_init1(0o4000)\n"
        "for folder in (b'/workspace', b'/tmp', b'/dev/shm'):\n"
        "    libc.inotify_add_watch(watch, folder, 0x302)\n"  # create, modify, delete
    )
    touch = "import os\nfor d in ('/workspace', '/tmp', '/dev/shm'): open(d + '/touched', 'w').close()"
    events = "try: print(b'touched' in os.read(watch, 1 << 16))\nexcept BlockingIOError: print(False)"
    seeker.python(watch)
    hider.python(touch)
    assert seeker.python(events) == "False"
    seeker.python(touch)
    assert seeker.python(events) == "True"  # the control


def test_documented_residual_locks_on_shared_read_only_files_are_seen(
    pair: tuple[Attacker, Attacker, dict],
) -> None:
    # SECURITY.md, section 5: sessions that want to can signal to one another. One bit at a time.
    hider, seeker, _ = pair
    lock = "import fcntl\nshared = open('/usr/bin/env', 'rb')\nfcntl.flock(shared, fcntl.LOCK_EX)"
    look = (
        "import fcntl\nother = open('/usr/bin/env', 'rb')\n"
        "try:\n    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB); print('free')\n"
        "except BlockingIOError: print('held')\nother.close()"
    )
    assert seeker.python(look) == "free"
    hider.python(lock)
    assert seeker.python(look) == "held"
    hider.python("shared.close()")
    assert seeker.python(look) == "free"


def test_what_one_uses_up_the_other_still_has(pair: tuple[Attacker, Attacker, dict]) -> None:
    hider, seeker, _ = pair
    hoard = (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nheld = []\n"
        "while (one := libc.inotify_init1(0)) >= 0: held.append(one)\n"
        "files = []\n"
        "try:\n    while True: files.append(os.memfd_create('x'))\nexcept OSError: pass\n"
        "for fd in files[-20:]: os.close(fd)\nprint(len(held) > 0 and len(files) > 20)"
    )
    assert hider.python(hoard) == "True"
    assert seeker.python(
        "import ctypes\nprint(ctypes.CDLL(None).inotify_init1(0) >= 0)"
    ) == "True"
    hider.python("for fd in held + files[:-20]: os.close(fd)")
    assert hider.is_well() and seeker.is_well()
