# SPDX-License-Identifier: Apache-2.0
"""What an execution leaves behind: artifacts, saved texts, metrics, what was noted about it."""

import hashlib

from harness import Server, Session


def by_path(done: dict) -> dict[str, dict]:
    return {artifact["path"]: artifact for artifact in done["artifacts"]}


def test_files_that_are_made_and_changed_are_listed(session: Session) -> None:
    done = session.execute("open('a.csv', 'w').write('x,y\\n')\nNone")
    assert done["artifacts_complete"] is True
    assert done["artifacts"] == [
        {
            "path": "a.csv",
            "change": "created",
            "bytes": 4,
            "sha256": hashlib.sha256(b"x,y\n").hexdigest(),
            "media_type": "text/csv",
        }
    ]
    done = session.execute("import os\nos.makedirs('d/e')\nopen('d/e/f.json', 'w').write('{}')\n"
                           "open('a.csv', 'a').write('1,2\\n')\nos.mkfifo('p')\n"
                           "os.symlink('/etc/passwd', 'link')\nNone")
    found = by_path(done)
    assert set(found) == {"a.csv", "d/e/f.json"}
    assert found["a.csv"]["change"] == "modified"
    assert found["a.csv"]["sha256"] == hashlib.sha256(b"x,y\n1,2\n").hexdigest()
    assert found["d/e/f.json"]["media_type"] == "application/json"
    assert session.execute("open('a.csv').read()\nNone")["artifacts"] == []
    done = session.execute("os.remove('a.csv')\nos.rename('d/e/f.json', 'g.json')")
    assert set(by_path(done)) == {"g.json"}


def test_what_others_put_is_no_artifact(server: Server, session: Session) -> None:
    session.execute("1")
    put = server.request("PUT", session.path + "/files/in.txt", data=b"mine")
    assert put.status_code == 201
    assert session.execute("open('in.txt').read()")["artifacts"] == []


def test_a_failing_and_a_dying_execution_leave_artifacts_too(session: Session) -> None:
    failed = session.execute("open('before.txt', 'w').write('x')\n1 / 0")
    assert failed["status"] == "error"
    assert set(by_path(failed)) == {"before.txt"}
    died = session.execute("import os\nopen('last.txt', 'w').write('x')\nos._exit(3)")
    assert died["status"] == "dead", died
    assert set(by_path(died)) == {"last.txt"}
    assert session.value("1") == "1"


def test_names_of_any_bytes(session: Session) -> None:
    done = session.execute("open(b'new\\nline', 'w').close()\nopen(b'\\xff\\xfe.png', 'w').close()")
    found = done["artifacts"]
    assert found[0]["path"] == "new\nline" and "path_base64" not in found[0]
    assert found[1]["path_base64"] == "//4ucG5n"
    assert found[1]["media_type"] == "image/png"


def test_beyond_artifact_bytes_there_is_no_digest(server: Server) -> None:
    session = server.create(limits={"artifact_bytes": 1000})
    done = session.execute("open('a', 'w').write('x' * 1001)\nopen('b', 'w').write('y' * 1000)\nNone")
    found = by_path(done)
    assert found["a"]["sha256"] is None and found["a"]["bytes"] == 1001
    assert found["b"]["sha256"] is not None
    assert done["truncated"]["artifacts"] == {"kept": 1000, "total": 2001, "saved_to": None}
    assert session.delete() == 204


def test_a_hostile_workspace_is_answered_in_time(session: Session) -> None:
    done = session.execute(
        "import os, threading\n"
        "with open('sparse', 'w') as f:\n"
        "    try:\n"
        "        f.truncate(1 << 40)\n"
        "    except OSError:\n"
        "        f.truncate(1 << 31)\n"
        "for i in range(100):\n"
        "    os.mkdir('deep'); os.chdir('deep')\n"
        "open('bottom', 'w').close()\n"
        "os.chdir('/workspace')\n"
        "stop = threading.Event()\n"
        "def swap():\n"
        "    while not stop.is_set():\n"
        "        try:\n"
        "            open('swap', 'w').write('x' * 100000); os.remove('swap')\n"
        "            os.symlink('/proc/self/environ', 'swap'); os.remove('swap')\n"
        "            os.mkfifo('swap'); os.remove('swap')\n"
        "        except OSError:\n"
        "            pass\n"
        "threading.Thread(target=swap, daemon=True).start()",
    )
    assert done["status"] == "ok", done
    found = by_path(done)
    assert found["sparse"]["sha256"] is None
    assert done["artifacts_complete"] is False  # deeper than the server looks
    for _ in range(20):
        again = session.execute("1")
        assert again["status"] == "ok"
        assert set(by_path(again)) <= {"swap"}
    assert session.execute("stop.set()")["status"] == "ok"


def test_many_files_are_bounded_and_delay_no_other_session(server: Server, session: Session) -> None:
    done = session.execute(
        "for i in range(100_000):\n"
        "    try:\n"
        "        open(f'f{i}', 'w').close()\n"
        "    except OSError as full:\n"
        "        break\n"
        "i"
    )
    assert done["status"] in ("ok", "disk_full"), done
    assert len(done["artifacts"]) == 256
    assert done["artifacts_complete"] is False
    assert server.get("/healthz").status_code == 200
    assert session.value("2") == "2"


def test_long_text_is_saved_whole_and_cleaned_up(server: Server) -> None:
    session = server.create(limits={"output_bytes": 1000})
    done = session.execute("for i in range(1000): print(i)")
    cut = done["truncated"]["stdout"]
    whole = "".join(f"{i}\n" for i in range(1000))
    assert cut["total"] == len(whole)
    got = server.get(f"{session.path}/files/{cut['saved_to']}")
    assert got.status_code == 200 and got.text == whole
    assert done["artifacts"] == []
    for _ in range(32):
        session.execute("print('x' * 2000)")
    assert server.get(f"{session.path}/files/{cut['saved_to']}").status_code == 404
    assert session.delete() == 204


def test_text_that_does_not_fit_says_so(server: Server) -> None:
    session = server.create(limits={"output_bytes": 1000, "disk_mb": 2})
    done = session.execute("for _ in range(2000): print('x' * 1000)")
    cut = done["truncated"]["stdout"]
    assert cut["saved_to"] is None, done
    assert cut["not_saved"] == "too_long"
    assert cut["total"] == 2000 * 1001
    assert session.execute("open('mine', 'w').write('x' * 1_000_000)")["status"] == "ok"
    assert session.delete() == 204


def test_metrics_are_of_this_execution(session: Session) -> None:
    session.execute("block = bytearray(b'x') * (120 << 20)")
    session.execute("del block")
    small = session.execute("x = 1")["metrics"]
    large = session.execute("block = bytearray(b'x') * (120 << 20); del block")["metrics"]
    assert large["memory_peak_bytes"] > 120 << 20
    if small["memory_peak_of"] == "execution":
        assert small["memory_peak_bytes"] < large["memory_peak_bytes"]
    else:
        assert small["memory_peak_bytes"] >= 120 << 20
    busy = session.execute("import time\nend = time.process_time() + 0.2\n"
                           "while time.process_time() < end: pass")["metrics"]
    assert busy["cpu_ms"] >= 200
    assert busy["wall_ms"] >= 200
    idle = session.execute("time.sleep(0.2)")["metrics"]
    assert idle["wall_ms"] >= 200
    assert idle["cpu_ms"] < busy["cpu_ms"]
    assert busy["queued_ms"] >= 0


def test_reasoning_and_metadata_are_kept(server: Server, session: Session) -> None:
    done = session.execute("1", reasoning="to see", metadata={"step": 3})
    assert done["reasoning"] == "to see" and done["metadata"] == {"step": 3}
    again = server.get(f"{session.path}/executions/{done['id']}").json()
    assert again["reasoning"] == "to see" and again["metadata"] == {"step": 3}
    assert again["artifacts"] == done["artifacts"]
