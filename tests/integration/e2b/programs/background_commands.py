# SPDX-License-Identifier: Apache-2.0
"""A program for E2B that runs commands: to their end, failing, beside it, and with something to read."""

from e2b import CommandExitException, Sandbox, TimeoutException

sandbox = Sandbox.create()

result = sandbox.commands.run("echo hello; echo oops >&2", envs={"WHO": "you"}, cwd="/home/user")
print("done", result.exit_code, repr(result.stdout), repr(result.stderr))
print("variable", sandbox.commands.run("echo $WHO", envs={"WHO": "you"}).stdout.strip())

try:
    sandbox.commands.run("ls /no/such/place")
except CommandExitException as failed:
    print("failed", failed.exit_code != 0, "No such file" in failed.stderr)

command = sandbox.commands.run("echo hello; sleep 600; echo world", background=True)
for stdout, stderr, _ in command:
    if stdout:
        print("heard", stdout.strip())
        break
print("listed", command.pid in [process.pid for process in sandbox.commands.list()])
print("killed", command.kill())

reader = sandbox.commands.run("read line; echo got $line", background=True, stdin=True)
sandbox.commands.send_stdin(reader.pid, "a line\n")
print("answer", reader.wait().stdout.strip())

server = sandbox.commands.run("python3 -m http.server 3000", background=True, timeout=0)
ready = sandbox.commands.run(
    "for i in $(seq 300); do (echo > /dev/tcp/127.0.0.1/3000) 2>/dev/null && exit 0; sleep 0.1; done; exit 1"
)
print("server", ready.exit_code, sandbox.get_host(3000).split(".")[0] == f"3000-{sandbox.sandbox_id}")
server.kill()

try:
    sandbox.commands.run("sleep 600", timeout=1)
except TimeoutException:
    print("too long")

sandbox.kill()
