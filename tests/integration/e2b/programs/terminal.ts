// SPDX-License-Identifier: Apache-2.0
//
// A program for E2B with a terminal: a shell with variables, a new size, another look at it later.
import { Sandbox } from 'e2b'

const sandbox = await Sandbox.create()
let seen = ''
let news = () => {}
const decoder = new TextDecoder()
const hear = (data: Uint8Array) => {
  seen += decoder.decode(data, { stream: true })
  news()
}
const until = async (text: string) => {
  while (!seen.includes(text)) {
    await new Promise<void>((resolve) => (news = resolve))
  }
}
const type = (pid: number, text: string) =>
  sandbox.pty.sendInput(pid, new TextEncoder().encode(text))

const terminal = await sandbox.pty.create({
  cols: 80,
  rows: 24,
  onData: hear,
  envs: { MY_VAR: 'hello' },
  cwd: '/home/user',
  timeoutMs: 0,
})
console.log('pid', terminal.pid > 0)

await type(terminal.pid, 'echo "var=$MY_VAR dir=$(pwd) size=$(stty size) term=$TERM"\n')
await until('var=hello dir=/home/user size=24 80 term=xterm-256color')
console.log('first size')

await sandbox.pty.resize(terminal.pid, { cols: 120, rows: 40 })
await type(terminal.pid, 'echo "size=$(stty size)"\n')
await until('size=40 120')
console.log('second size')

await type(terminal.pid, "printf '\\033[31mred\\033[0m\\n'\n")
await until('\u001b[31mred\u001b[0m')
console.log('colour')

// The program says itself that it runs: keys that come before it is in front would not reach it. What is typed is
// shown too, so it is not the word itself.
await type(terminal.pid, "sh -c 'echo go''ing; exec sleep 600'\n")
await until('going')
await type(terminal.pid, '\u0003')
await type(terminal.pid, 'echo "status=$?"\n')
await until('status=130')
console.log('interrupted')

await terminal.disconnect()
seen = ''
const again = await sandbox.pty.connect(terminal.pid, { onData: hear, timeoutMs: 0 })
await type(again.pid, 'echo "still $MY_VAR"\n')
await until('still hello')
console.log('connected again')

await type(again.pid, 'exit 7\n')
const end = await again.wait().catch((failure: { exitCode: number }) => failure)
console.log('exit', end.exitCode)

const other = await sandbox.pty.create({ cols: 80, rows: 24, onData: () => {}, timeoutMs: 0 })
console.log('killed', await sandbox.pty.kill(other.pid), await sandbox.pty.kill(999999))
await sandbox.kill()
