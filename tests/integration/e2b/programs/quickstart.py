# SPDX-License-Identifier: Apache-2.0
"""A first program for E2B: run code, look at its logs, let it fail, see the files."""

from e2b_code_interpreter import Sandbox

sandbox = Sandbox.create()
print("created", bool(sandbox.sandbox_id))

execution = sandbox.run_code("print('hello world')")
print("logs", execution.logs.stdout, execution.logs.stderr)

sandbox.run_code("x = 1")
execution = sandbox.run_code("x += 1; x")
print("text", execution.text)

execution = sandbox.run_code("undefined_name")
print("error", execution.error.name, "-", execution.error.value)

sandbox.files.write("/home/user/hello.txt", "hello")
for entry in sandbox.files.list("/home/user"):
    if entry.name == "hello.txt":
        print("file", entry.path, entry.type.value)

print("system", "home" in [entry.name for entry in sandbox.files.list("/")])
sandbox.files.write("/tmp/note.txt", "outside of home")
print("tmp", sandbox.files.read("/tmp/note.txt"))

sandbox.kill()
print("running", sandbox.is_running())
