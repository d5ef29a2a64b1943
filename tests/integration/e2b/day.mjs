// SPDX-License-Identifier: Apache-2.0
//
// What a program written for E2B's TypeScript client does in a day. Prints one line for each part that went well; any
// failure ends the program. The packages are those of the folder that the first argument names.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const { Sandbox } = createRequire(process.argv[2])('@e2b/code-interpreter')

const done = (part) => console.log(`done ${part}`)
const sandbox = await Sandbox.create({ timeoutMs: 300_000, metadata: { from: 'typescript' } })
try {
  assert.equal(await sandbox.isRunning(), true)
  await sandbox.runCode('x = 41')
  const out = []
  const run = await sandbox.runCode("print('hi'); x + 1", { onStdout: (message) => out.push(message.line) })
  assert.equal(run.text, '42')
  assert.deepEqual(out, ['hi\n'])
  assert.equal((await sandbox.runCode('1 / 0')).error.name, 'ZeroDivisionError')
  const frame = await sandbox.runCode("import pandas as pd\npd.DataFrame({'a': [1]})")
  assert.match(frame.results[0].html, /<table/)
  assert.equal((await sandbox.runCode('6 * 7', { language: 'js' })).text, '42')
  done('code')

  const context = await sandbox.createCodeContext({ language: 'python' })
  assert.equal((await sandbox.runCode("'x' in globals()", { context })).text, 'False')
  assert.ok((await sandbox.listCodeContexts()).some((one) => one.id === context.id))
  await sandbox.restartCodeContext(context)
  await sandbox.removeCodeContext(context)
  done('contexts')

  const info = await sandbox.files.write('notes.txt', 'käse')
  assert.equal(info.path, '/home/user/notes.txt')
  assert.equal(await sandbox.files.read('notes.txt'), 'käse')
  await sandbox.files.write([
    { path: 'many/a', data: 'A' },
    { path: 'many/b', data: new Blob(['B']) },
  ])
  assert.deepEqual((await sandbox.files.list('many')).map((entry) => entry.name), ['a', 'b'])
  assert.equal(await sandbox.files.exists('many/c'), false)
  await sandbox.files.rename('many/a', 'many/c')
  await sandbox.files.remove('many/b')
  assert.equal(await sandbox.files.read('many/c'), 'A')
  done('files')

  const command = await sandbox.commands.run('echo out; echo err >&2')
  assert.deepEqual([command.stdout, command.stderr, command.exitCode], ['out\n', 'err\n', 0])
  await assert.rejects(sandbox.commands.run('exit 3'), (failure) => failure.exitCode === 3)
  const sorted = await sandbox.commands.run('sort', { background: true, stdin: true })
  await sandbox.commands.sendStdin(sorted.pid, 'b\na\n')
  await sandbox.commands.closeStdin?.(sorted.pid)
  if (sandbox.commands.closeStdin) {
    assert.equal((await sorted.wait()).stdout, 'a\nb\n')
  }
  const slow = await sandbox.commands.run('sleep 600', { background: true })
  assert.ok((await sandbox.commands.list()).some((one) => one.pid === slow.pid))
  assert.equal(await slow.kill(), true)
  await slow.wait().catch(() => undefined)
  assert.equal(await sandbox.commands.kill(slow.pid), false)
  done('commands')

  let seen = ''
  // On its way to the prompt, bash reads the terminal's size and sets it again.
  let reachPrompt
  const prompt = new Promise((resolve) => (reachPrompt = resolve))
  const terminal = await sandbox.pty.create({
    cols: 80,
    rows: 24,
    onData: (data) => {
      seen += new TextDecoder().decode(data)
      if (/[#$] $/.test(seen)) {
        reachPrompt()
      }
    },
  })
  await prompt
  await sandbox.pty.resize(terminal.pid, { cols: 132, rows: 40 })
  await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('echo size=$(stty size); exit\n'))
  await terminal.wait()
  assert.match(seen, /size=40 132/)
  done('terminal')

  await sandbox.setTimeout(200_000)
  const pages = Sandbox.list({ query: { metadata: { from: 'typescript' } } })
  assert.equal((await pages.nextItems())[0].sandboxId, sandbox.sandboxId)
  assert.match(sandbox.getHost(3000), /^3000-[0-9a-f]{24}\.localhost:/)
  await sandbox.pause?.()
  if (sandbox.pause) {
    assert.equal((await Sandbox.getInfo(sandbox.sandboxId)).state, 'paused')
    const again = await Sandbox.connect(sandbox.sandboxId)
    assert.equal((await again.runCode('x')).text, '41')
  }
  done('life')
} finally {
  assert.equal(await sandbox.kill(), true)
}
assert.equal(await sandbox.kill(), false)
done('end')
