// SPDX-License-Identifier: Apache-2.0
//
// A program for E2B that labels sandboxes with metadata and finds them again, page by page.
import { Sandbox } from '@e2b/code-interpreter'

const made = await Promise.all(
  ['alice', 'bob', 'alice'].map((userId, at) =>
    Sandbox.create({ metadata: { program: 'paging', userId, at: String(at) }, timeoutMs: 120_000 }),
  ),
)

const paginator = Sandbox.list({ query: { metadata: { program: 'paging' } }, limit: 2 })
const pages: number[] = []
const found: string[] = []
while (paginator.hasNext) {
  const items = await paginator.nextItems()
  pages.push(items.length)
  found.push(...items.map((item) => item.sandboxId))
}
console.log('pages', JSON.stringify(pages))
console.log('all', made.every((sandbox) => found.includes(sandbox.sandboxId)))

const ofAlice = await Sandbox.list({
  query: { metadata: { program: 'paging', userId: 'alice' }, state: ['running'] },
}).nextItems()
console.log('alice', ofAlice.length, ofAlice.map((item) => item.metadata.at).sort().join())

await made[1].pause()
const paused = await Sandbox.list({
  query: { metadata: { program: 'paging' }, state: ['paused'] },
}).nextItems()
console.log('paused', paused.length, paused[0].metadata.userId)

const again = await Sandbox.connect(ofAlice[0].sandboxId)
console.log('works', (await again.runCode('1 + 1')).text)

console.log('killed', JSON.stringify(await Promise.all(made.map((sandbox) => sandbox.kill()))))
const left = await Sandbox.list({ query: { metadata: { program: 'paging' } } }).nextItems()
console.log('left', left.length)
