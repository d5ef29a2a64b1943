# SPDX-License-Identifier: Apache-2.0
"""A program for E2B that works with files: one and many, a local folder, information, a watch."""

import os
import time

from e2b import FileType, FilesystemEventType, NotFoundException, Sandbox

sandbox = Sandbox.create()

sandbox.files.write("/home/user/my-file", "file content")
print("read", sandbox.files.read("/home/user/my-file"))

sandbox.files.write_files(
    [
        {"path": "/home/user/a.txt", "data": "first"},
        {"path": "/home/user/b.bin", "data": b"\x00\x01\x02"},
    ]
)
print("binary", bytes(sandbox.files.read("/home/user/b.bin", format="bytes")))

os.makedirs("local", exist_ok=True)
for number in range(3):
    with open(f"local/{number}.txt", "w") as file:
        file.write(f"local file {number}")
batch = []
for name in sorted(os.listdir("local")):
    with open(os.path.join("local", name), "rb") as file:
        batch.append({"path": f"/home/user/upload/{name}", "data": file.read()})
sandbox.files.write_files(batch)
print("uploaded", [entry.name for entry in sorted(sandbox.files.list("upload"), key=lambda e: e.name)])

info = sandbox.files.get_info("/home/user/my-file")
print("info", info.name, info.type == FileType.FILE, info.size, info.permissions, info.path)

print("made", sandbox.files.make_dir("/home/user/watched"))
handle = sandbox.files.watch_dir("/home/user/watched")
sandbox.files.write("/home/user/watched/new-file", "hello")
seen = False
deadline = time.monotonic() + 30
while not seen and time.monotonic() < deadline:
    for event in handle.get_new_events():
        if event.type == FilesystemEventType.WRITE and event.name == "new-file":
            seen = True
handle.stop()
print("watched", seen)

sandbox.files.rename("/home/user/my-file", "/home/user/renamed")
print("exists", sandbox.files.exists("/home/user/my-file"), sandbox.files.exists("/home/user/renamed"))
sandbox.files.remove("/home/user/upload")
try:
    sandbox.files.list("/home/user/upload")
except NotFoundException:
    print("not found")

sandbox.kill()
