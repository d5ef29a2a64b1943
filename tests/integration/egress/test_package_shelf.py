# SPDX-License-Identifier: Apache-2.0
"""The cache of packages by itself: how much is kept, what is fetched at a time, its folder, its options."""

import random
import subprocess
import threading
from pathlib import Path

import pytest
import requests

from harness import wait_until
from package_cache import PackageCache, free_port
from stated_index import SUFFIX, StatedIndex

SPARE = f"spare-1.0{SUFFIX}"
# The smallest cache: half for files that are kept, a sixteenth for one (scripts/lib/package_cache/shelf.py).
DISK = 64 << 20
KEPT_MAX, FILE_MAX = DISK // 2, DISK // 16


def content(number: int, size: int) -> bytes:
    return random.Random(number).randbytes(size)


def test_the_disk_has_a_bound(index: StatedIndex, cache: PackageCache) -> None:
    """Twelve files, of which ten fit; then one that is as large as may be, and one that is larger."""
    size = 3 << 20
    for number in range(12):
        index.add("large", f"{number}.0", content(number, size))
    for number in range(12):
        answer = cache.get("large", f"large-{number}.0{SUFFIX}")
        assert answer.status_code == 200 and answer.content == content(number, size)
        assert sum(path.stat().st_size for path in cache.files().values()) <= KEPT_MAX + FILE_MAX
        # It is used again and again, so it stays.
        assert cache.get("large", f"large-0.0{SUFFIX}").content == content(0, size)
    assert index.asked_for(f"large-0.0{SUFFIX}") == 1
    assert f"large-1.0{SUFFIX}" not in cache.files() and f"large-0.0{SUFFIX}" in cache.files()
    removed = [Path(one["file"]).name for one in cache.events("removed")]
    assert removed == [f"large-1.0{SUFFIX}"]
    assert cache.get("large", f"large-1.0{SUFFIX}").content == content(1, size)
    assert index.asked_for(f"large-1.0{SUFFIX}") == 2
    index.add("limit", "1.0", content(20, FILE_MAX))
    index.add("limit", "2.0", content(21, FILE_MAX + 1))
    assert cache.get("limit", f"limit-1.0{SUFFIX}").content == content(20, FILE_MAX)
    answer = cache.get("limit", f"limit-2.0{SUFFIX}")
    assert answer.status_code == 403 and "File too large" in answer.reason, answer.reason
    assert cache.disk() <= DISK


def test_it_starts_again_after_it_has_removed_what_it_fetched_last(
    index: StatedIndex, cache: PackageCache
) -> None:
    size = 3 << 20
    for number in range(12):
        index.add("large", f"{number}.0", content(number, size))
    # The last change of the database is of 11. The others are used after it, and there is no room for all.
    for number in [*range(12), *range(1, 11), 0]:
        assert cache.get("large", f"large-{number}.0{SUFFIX}").status_code == 200
    removed = [Path(one["file"]).name for one in cache.events("removed")]
    assert removed == [f"large-0.0{SUFFIX}", f"large-11.0{SUFFIX}"]
    cache.stop()
    cache.start()
    assert cache.get("large", f"large-11.0{SUFFIX}").content == content(11, size)
    assert index.asked_for(f"large-11.0{SUFFIX}") == 2


def test_a_database_that_is_full_begins_anew(index: StatedIndex, cache: PackageCache) -> None:
    assert cache.get("spare", SPARE).status_code == 200
    for number in range(40):
        files = [f"full{number}-{one}.0{SUFFIX}" for one in range(400)]
        many = [f'<a href="{file}#sha256={one:064x}">{file}</a>' for one, file in enumerate(files)]
        index.pages[f"full{number}"] = "\n".join(many).encode()
    for number in range(40):
        try:
            cache.page(f"full{number}")
        except requests.ConnectionError:
            break
    wait_until(lambda: len(cache.events("listening")) == 2, 60, "the cache has started anew")
    wait_until(cache.answers, 60, "the cache answers")
    assert len(cache.events("database_full")) == 1
    assert cache.files() == {}
    assert cache.get("spare", SPARE).status_code == 200
    assert cache.disk() <= DISK


def test_a_file_that_many_ask_for_at_once_is_fetched_once(
    index: StatedIndex, cache: PackageCache
) -> None:
    address = cache.link("spare", SPARE)
    whole = (index.folder / "spare" / SPARE).read_bytes()
    answers: list[bytes] = []
    index.go.clear()
    clients = [
        threading.Thread(target=lambda: answers.append(requests.get(address, timeout=60).content))
        for _ in range(5)
    ]
    for client in clients:
        client.start()
    assert index.asked.wait(60)
    index.go.set()
    for client in clients:
        client.join()
    assert answers == [whole] * 5
    assert index.asked_for(SPARE) == 1


def test_three_files_are_fetched_at_a_time(index: StatedIndex, cache: PackageCache) -> None:
    for number in range(4):
        index.add("large", f"{number}.0", content(number, 1 << 20))
    *three, fourth = [cache.link("large", f"large-{number}.0{SUFFIX}") for number in range(4)]
    answers: list[bytes] = []
    index.go.clear()
    clients = [
        threading.Thread(target=lambda one=one: answers.append(requests.get(one, timeout=60).content))
        for one in three
    ]
    for client in clients:
        client.start()
    asked = lambda: sum(index.asked_for(f"large-{number}.0{SUFFIX}") for number in range(3))  # noqa: E731
    wait_until(lambda: asked() == 3, 60, "three files are fetched")
    busy = requests.get(fourth, timeout=60)
    assert busy.status_code == 503 and busy.headers["Retry-After"] == "2"
    assert index.asked_for(f"large-3.0{SUFFIX}") == 0
    index.go.set()
    for client in clients:
        client.join()
    assert sorted(answers) == sorted(content(number, 1 << 20) for number in range(3))
    assert requests.get(fourth, timeout=60).content == content(3, 1 << 20)


@pytest.mark.parametrize("spoiled", [False, True])
def test_a_file_that_arrives_slowly_keeps_its_client_waiting(
    index: StatedIndex, cache: PackageCache, spoiled: bool
) -> None:
    name, body = f"slowly-1.0{SUFFIX}", content(1, 1 << 20)
    index.add("slowly", "1.0", body)
    if spoiled:
        index.spoiled.add(name)
    address = cache.link("slowly", name)
    index.go.clear()
    with requests.get(address, timeout=60, stream=True) as answer:
        assert answer.status_code == 200 and int(answer.headers["Content-Length"]) == len(body)
        got = answer.raw.read(1)
        assert cache.events("fetched") == [] and name not in cache.files()
        index.go.set()
        if not spoiled:
            assert got + answer.raw.read() == body
            assert cache.files()[name].read_bytes() == body
            return
        with pytest.raises(Exception, match="IncompleteRead|incomplete"):
            while answer.raw.read(1 << 16):
                pass
    assert len(cache.events("refused")) == 1 and name not in cache.files()


@pytest.mark.parametrize(
    "wrong",
    [
        ("--disk", "63M"),
        ("--disk", "1"),
        ("--disk", "0G"),
        ("--disk", "-1G"),
        ("--disk", "many"),
        ("--listen", "127.0.0.1"),
        ("--listen", "localhost:1"),
        ("--listen", "127.0.0.1:0"),
        ("--listen", "127.0.0.1:65536"),
        ("--index", "ftp://packages.example/"),
        ("--index", ""),
        ("--unknown",),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, port: int, wrong: tuple[str, ...]) -> None:
    cache = PackageCache(tmp_path, port, "http://127.0.0.1:1/", *wrong)
    answer = subprocess.run(cache.command, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 2 and wrong[0] in answer.stderr
    assert not cache.folder.exists()


def test_one_cache_has_a_folder(tmp_path: Path, cache: PackageCache) -> None:
    second = PackageCache(tmp_path, free_port(), "http://127.0.0.1:1/")
    answer = subprocess.run(second.command, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 1 and "another cache runs" in answer.stderr
    assert cache.get("spare", SPARE).status_code == 200


def test_another_index_begins_anew(
    tmp_path: Path, port: int, index: StatedIndex, cache: PackageCache
) -> None:
    assert cache.get("spare", SPARE).status_code == 200
    cache.stop()
    (tmp_path / "other").mkdir()
    with StatedIndex(tmp_path / "other") as other, PackageCache(tmp_path, port, other.url) as anew:
        assert anew.files() == {}
        assert anew.get("spare", SPARE).status_code == 200
        assert (index.asked_for(SPARE), other.asked_for(SPARE)) == (1, 1)
