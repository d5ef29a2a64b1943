// SPDX-License-Identifier: Apache-2.0
//
// A program for E2B that hears code and commands while they run, and keeps a picture.
import * as fs from 'node:fs'
import { Sandbox, type OutputMessage, type Result } from '@e2b/code-interpreter'

const sandbox = await Sandbox.create()

const heard: string[] = []
const execution = await sandbox.runCode(
  `
import matplotlib.pyplot as plt
print("drawing")
plt.plot([1, 2, 3], label="one")
plt.title("Three points")
plt.show()
"done"
`,
  {
    onStdout: (message: OutputMessage) => heard.push(message.line),
    onStderr: (message: OutputMessage) => heard.push(message.line),
    onResult: (result: Result) => heard.push(result.png ? 'a picture' : String(result.text)),
  },
)
console.log('heard', JSON.stringify(heard.sort()))
console.log('text', execution.text)
const picture = execution.results.find((result) => result.png)
fs.writeFileSync('chart.png', Buffer.from(picture?.png ?? '', 'base64'))
console.log('chart', picture?.chart?.type, picture?.chart?.title)

const lines: string[] = []
const result = await sandbox.commands.run('echo hello; sleep 0.3; echo world; echo careful >&2', {
  onStdout: (data: string) => {
    lines.push('out ' + data.trim())
  },
  onStderr: (data: string) => {
    lines.push('err ' + data.trim())
  },
})
console.log('lines', JSON.stringify(lines.sort()))
console.log('result', result.exitCode, JSON.stringify(result.stdout))

const command = await sandbox.commands.run('echo started; sleep 600', {
  background: true,
})
const listed = await sandbox.commands.list()
console.log('listed', listed.some((one) => one.pid === command.pid))
while (!command.stdout.includes('started')) {
  await new Promise((resolve) => setTimeout(resolve, 20))
}
console.log('background', command.stdout.trim())
console.log('killed', await command.kill())

await sandbox.files.write('hello.txt', 'hello from a program')
const blob = await sandbox.files.read('hello.txt', { format: 'blob' })
console.log('file', await blob.text())
await sandbox.kill()
