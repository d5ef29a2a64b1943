// SPDX-License-Identifier: Apache-2.0
//
// A program for E2B that pauses a sandbox and goes on later, and changes how long it lives.
import { NotFoundError, Sandbox } from '@e2b/code-interpreter'

const sandbox = await Sandbox.create({ timeoutMs: 120_000 })
await sandbox.runCode('kept = [1, 2, 3]')
await sandbox.files.write('kept.txt', 'on disk')
const counter = await sandbox.commands.run('n=0; while true; do n=$((n + 1)); echo $n > ticks; sleep 0.05; done', {
  background: true,
  timeoutMs: 0,
})

const before = await sandbox.getInfo()
console.log('state', before.state, before.templateId)
const sandboxId = sandbox.sandboxId
await sandbox.pause()
console.log('state', (await Sandbox.getInfo(sandboxId)).state)

const same = await Sandbox.connect(sandboxId, { timeoutMs: 60_000 })
console.log('same', same.sandboxId === sandboxId, await same.isRunning())
console.log('memory', (await same.runCode('sum(kept)')).text)
console.log('disk', await same.files.read('kept.txt'))
console.log('process', (await same.commands.list()).some((one) => one.pid === counter.pid))

await same.setTimeout(30_000)
const left = (await same.getInfo()).endAt.getTime() - Date.now()
console.log('timeout', left > 0 && left <= 31_000)

console.log('killed', await same.kill())
try {
  await Sandbox.connect(sandboxId)
} catch (error) {
  console.log('gone', error instanceof NotFoundError)
}
