// SPDX-License-Identifier: Apache-2.0
//
// The packed package against a real server, which CELLKEEP_URL and CELLKEEP_TOKEN name.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Client, ConnectionFailed, EventDecoder, ExecutionFailed, ProblemError, Session } from 'cellkeep';

import { cut, spoiling, within } from './support.mjs';

test('variables live on, and a figure is a picture', async () => {
    await within({}, async (session) => {
        await session.run('x = 6');
        const result = await session.run(
            'import matplotlib.pyplot as plt; plt.plot([1, 4]); plt.show(); print("seen"); x * 7'
        );
        assert.equal(result.status, 'ok');
        assert.equal(result.text, 'seen\n42');
        assert.deepEqual([...result.images[0].bytes.slice(1, 4)], [0x50, 0x4e, 0x47]);
    });
});

test('a failing program is a result, and an exception only when asked', async () => {
    await within({ limits: { executions: 2 } }, async (session) => {
        const failed = await session.run('d = {}\nd["missing"]');
        assert.equal(failed.status, 'error');
        assert.equal(failed.error.name, 'KeyError');
        assert.equal(failed.error.line, 2);
        assert.throws(() => failed.orThrow(), ExecutionFailed);
        await session.run('1');
        await assert.rejects(session.run('2'), (error) => {
            assert.ok(error instanceof ProblemError);
            assert.equal(error.status, 429);
            assert.equal(error.document.budget, 'executions');
            return true;
        });
    });
});

test('refusals carry the problem document', async () => {
    await assert.rejects(Session.create({ limits: { memory_mb: 1 } }), (error) => {
        assert.equal(error.status, 422);
        assert.equal(error.errors[0].pointer, '/limits/memory_mb');
        return true;
    });
    const client = new Client();
    await assert.rejects(client.session('ses_none'), (error) => error.kind === 'unknown-session');
    await assert.rejects(new Client({ token: 'wrong' }).create(), (error) => error.status === 401);
    await assert.rejects(
        new Client({ url: 'http://127.0.0.1:1', retries: 0 }).create(),
        ConnectionFailed
    );
});

test('events come in order and end with the whole answer', async () => {
    await within({}, async (session) => {
        const seen = [];
        for await (const event of session.stream('for n in range(50): print(n, flush=True)')) {
            seen.push(event);
        }
        const kept = seen.filter((event) => event.type !== 'heartbeat');
        assert.equal(kept[0].type, 'started');
        assert.equal(kept.at(-1).type, 'finished');
        assert.equal(kept.at(-1).execution.status, 'ok');
        const text = kept.filter((event) => event.type === 'stdout').map((event) => event.text);
        assert.equal(text.join(''), Array.from({ length: 50 }, (_, n) => `${n}\n`).join(''));
        const heard = [];
        const result = await session.run('print("heard")', { onStdout: (piece) => heard.push(piece) });
        assert.equal(heard.join(''), 'heard\n');
        assert.equal(result.stdout, 'heard\n');
    });
});

test('code calls functions of this program, and sees what they throw', async () => {
    await within({}, async (session) => {
        const tools = {
            rate: {
                description: 'The rate of a currency.',
                call: async ({ of }) => {
                    if (of !== 'EUR') {
                        throw new RangeError(of);
                    }
                    return { mid: 1.5 };
                },
            },
        };
        const code = "from cellkeep import tools\nprint(tools.rate(of='EUR')['mid'], tools.search('currency'))";
        const result = await session.run(code, { tools });
        assert.equal(result.stdout, "1.5 ['rate: The rate of a currency.']\n");
        const failed = await session.run(code.replace('EUR', '?'), { tools });
        assert.equal(failed.error?.message, 'RangeError: ?');
        const large = { rate: { call: () => 'x'.repeat(5 << 20) } };
        assert.match((await session.run(code, { tools: large })).error?.message ?? '', /at most/);
        assert.equal((await session.run(code)).status, 'error');
    });
});

test('packages are installed inside, or a refusal says what is there', async () => {
    const asked = [];
    const done = {
        installed: [{ name: 'rich', version: '14.1.0' }],
        present: [],
        restart_needed: false,
        output: '',
        output_truncated: false,
    };
    const installing = new Client({
        fetch: spoiling((answer, url, init) => {
            if (!url.pathname.endsWith('/packages')) {
                return answer;
            }
            asked.push(JSON.parse(init.body));
            return Response.json(done);
        }),
    });
    await within({}, async (session) => {
        await assert.rejects(session.install(['rich']), (error) => {
            assert.equal(error.kind, 'no-package-index');
            assert.equal(error.document.environment, 'default');
            return true;
        });
        await assert.rejects(session.install(['--pre']), (error) => {
            assert.equal(error.errors[0].pointer, '/python/0');
            return true;
        });
        const same = await installing.session(session.id);
        const installed = await same.install(['rich'], { timeout_ms: 60_000 });
        assert.equal(installed.installed[0].version, '14.1.0');
        assert.deepEqual(asked, [{ python: ['rich'], timeout_ms: 60_000 }]);
    });
});

test('a broken stream goes on without a gap or a repeat', async () => {
    const asked = [];
    const lossy = new Client({
        fetch: spoiling((answer, url, init) => {
            if (init.headers.Accept !== 'text/event-stream') {
                return answer;
            }
            asked.push([init.method, init.headers['Last-Event-ID']]);
            return asked.length < 4 ? cut(answer, 400) : answer;
        }),
    });
    await within({}, async (session) => {
        const same = await lossy.session(session.id);
        const code =
            'import threading\nfor n in range(40):\n print(n, flush=True)\n threading.Event().wait(0.01)';
        const numbers = [];
        let text = '';
        for await (const event of same.stream(code)) {
            if (event.seq !== undefined) {
                numbers.push(event.seq);
            }
            text += event.type === 'stdout' ? event.text : '';
        }
        assert.equal(text, Array.from({ length: 40 }, (_, n) => `${n}\n`).join(''));
        assert.deepEqual(numbers, [...new Set(numbers)].sort((a, b) => a - b));
        assert.ok(asked.length >= 4, `${asked.length} connections`);
        assert.equal(asked[0][0], 'POST');
        assert.equal((await session.refresh()).executions, 1);
    });
});

test('an answer that got lost is asked for again and not run twice', async () => {
    let lost = 0;
    const lossy = new Client({
        fetch: spoiling(async (answer, url, init) => {
            if (init.method === 'POST' && lost++ < 2) {
                await answer.arrayBuffer();
                throw new TypeError('fetch failed');
            }
            return answer;
        }),
    });
    await within({}, async (session) => {
        await session.run('count = 0');
        const same = await lossy.session(session.id);
        assert.equal((await same.run('count += 1; count')).text, '1');
    });
});

test('a submitted run is followed later, and stopped', async () => {
    await within({}, async (session) => {
        const job = await session.submit('6 * 7', { reasoning: 'to see' });
        assert.equal((await job.result()).text, '42');
        assert.equal((await (await session.execution(job.id)).result()).text, '42');
        const ids = [];
        for await (const entry of session.executions()) {
            ids.push(entry.id);
        }
        assert.ok(ids.includes(job.id));
        const endless = await session.submit('print("on", flush=True)\nwhile True: pass');
        for await (const event of endless.events()) {
            if (event.type === 'stdout') {
                break;
            }
        }
        await endless.interrupt();
        assert.equal((await endless.result()).status, 'interrupted');
    });
});

test('files go in and out, with progress, and on after a broken connection', async () => {
    const payload = Uint8Array.from({ length: 3 << 20 }, (_, at) => at & 0xff);
    const steps = [];
    const ranges = [];
    const lossy = new Client({
        fetch: spoiling((answer, url, init) => {
            if (init.method !== 'GET' || !url.pathname.includes('/files/')) {
                return answer;
            }
            ranges.push(init.headers.Range);
            return ranges.length < 3 ? cut(answer, 300_000) : answer;
        }),
    });
    await within({ files: [{ path: 'a.txt', text: 'text' }] }, async (session) => {
        assert.equal(await session.readText('a.txt'), 'text');
        const entry = await session.upload(payload, 'in/b 100%.bin', {
            onProgress: (done, total) => steps.push([done, total]),
        });
        assert.equal(entry.bytes, payload.byteLength);
        assert.deepEqual(steps[0], [0, payload.byteLength]);
        assert.deepEqual(steps.at(-1), [payload.byteLength, payload.byteLength]);
        const same = await lossy.session(session.id);
        assert.deepEqual(await same.download('in/b 100%.bin'), payload);
        assert.equal(ranges[0], undefined);
        assert.match(ranges[1], /^bytes=[1-9]/);
        assert.deepEqual((await session.files('in')).map((one) => one.path), ['in/b 100%.bin']);
        const result = await session.run("open('out.csv', 'w').write('a,b\\n')");
        assert.deepEqual(result.artifacts.map((one) => [one.path, one.change]), [['out.csv', 'created']]);
        assert.equal(await session.readText(result.artifacts[0]), 'a,b\n');
        assert.deepEqual([...(await session.archive()).slice(0, 4)], [0x28, 0xb5, 0x2f, 0xfd]);
        await session.remove('in', { recursive: true });
        await assert.rejects(session.readText('in/b 100%.bin'), (error) => error.status === 404);
    });
});

test('a mounted input is marked as read-only', async () => {
    await within({ files: [{ path: 'in/big.csv', from: 'big.csv' }] }, async (session) => {
        await session.upload('mine', 'in/mine.csv');
        const listed = (await session.files('in')).map((one) => [one.path, one.read_only]);
        assert.deepEqual(listed, [['in/big.csv', true], ['in/mine.csv', undefined]]);
        await assert.rejects(session.upload('other', 'in/big.csv'), (error) => error.kind === 'read-only-input');
    });
});

test('sessions are listed, changed, restarted; runs need none', async () => {
    const client = new Client();
    await within({ metadata: { task: 'T-1' } }, async (session) => {
        const ids = [];
        for await (const info of client.sessions()) {
            ids.push(info.id);
        }
        assert.deepEqual(ids, [session.id]);
        assert.deepEqual((await session.update({ metadata: { more: 1 } })).metadata, { task: 'T-1', more: 1 });
        assert.equal((await session.restart()).restarts, 1);
        await session.interrupt();
    });
    assert.equal((await client.run('input()', { stdin: 'once\n' })).text, "'once'");
});

test('a session goes back to a checkpoint, with its files', async () => {
    await within({}, async (session) => {
        await session.run("x = 1; open('data.txt', 'w').write('before')");
        const made = await session.checkpoints.make({ label: 'start' });
        assert.equal((await session.checkpoints.make()).unchanged, true);
        await session.run("x = 2; open('data.txt', 'w').write('after, and more')");
        const { files } = await session.checkpoints.diff(made.id);
        const [{ mode, mode_before, ...change }] = files;
        assert.deepEqual(change, { path: 'data.txt', change: 'modified', kind: 'file', bytes: 15, bytes_before: 6 });
        assert.equal(mode, mode_before);
        const back = await session.checkpoints.rollBack(made.id);
        assert.equal(back.files.failed_count, 0);
        assert.equal((await session.run('x, open("data.txt").read()')).text, "(1, 'before')");
        assert.deepEqual((await session.checkpoints.diff(made.id, back.left_as)).files, files);
        await session.checkpoints.remove(made.id);
        assert.deepEqual((await session.checkpoints.list()).map((one) => one.id), [back.left_as]);
    });
});

test('a session is branched, compared and merged', async () => {
    await within({ checkpoints: { branches: true } }, async (session) => {
        await session.run("x = 1; open('data.txt', 'w').write('before')");
        const [branch] = await session.branches.make({ labels: ['try'] });
        try {
            await branch.run("open('data.txt', 'w').write('after'); open('new.txt', 'w').close()");
            const page = await session.checkpoints.diff(branch.id, undefined, { limit: 1 });
            assert.deepEqual(page.files.map((one) => [one.path, one.change]), [['data.txt', 'modified']]);
            const rest = await session.checkpoints.diff(branch.id, undefined, { after: page.next });
            assert.deepEqual(rest.files.map((one) => [one.path, one.change]), [['new.txt', 'deleted']]);
            await session.run("open('data.txt', 'w').write('mine')");
            await assert.rejects(session.branches.merge(branch.id), (error) => {
                return error.kind === 'merge-conflict' && error.document.conflicts[0].path === 'data.txt';
            });
            const merged = await session.branches.merge(branch.id, { paths: ['new.txt'] });
            assert.deepEqual(merged.files.map((one) => one.path), ['new.txt']);
            assert.equal((await session.branches.merge(branch.id, { force: true })).overruled_count, 1);
            assert.equal(await session.readText('data.txt'), 'after');
        } finally {
            await branch.close();
        }
        const answers = await session.branches.tryAll([{ code: 'x + 1' }, { code: '1 / 0' }], { concurrency: 2 });
        assert.deepEqual(answers.map((one) => one.status), ['ok', 'error']);
        assert.equal(answers[0].text, '2');
    });
});

test('candidates run in fresh sessions until one succeeds', async () => {
    const client = new Client();
    const code = "import os; assert os.environ['RATE'] == '2'; print('found')";
    const items = ['1', '2', '3'].map((rate) => ({ env: { RATE: rate }, label: rate }));
    const batch = await client.batch(items, { code, concurrency: 1, stop_on: 'first_success' });
    const seen = [];
    for await (const line of batch.items()) {
        seen.push([line.label, line.status]);
    }
    assert.deepEqual(seen, [['1', 'error'], ['2', 'ok']]);
    assert.equal(batch.info.winner, 1);
    assert.equal((await batch.refresh()).stopped_by, 'first_success');
    assert.equal((await batch.summary()).done, 2);
    await batch.close();
    await batch.close();
    await assert.rejects(batch.refresh(), (error) => error.kind === 'unknown-batch');
});

test('events are the same however their bytes are cut', () => {
    const text = 'id: 1\nevent: stdout\ndata: {"seq":1,"type":"stdout","text":"é"}\n\n: comment\n\n';
    const bytes = new TextEncoder().encode(text);
    for (const size of [1, 2, 3, 500]) {
        const decoder = new EventDecoder();
        const events = [];
        for (let at = 0; at < bytes.length; at += size) {
            events.push(...decoder.feed(bytes.subarray(at, at + size)));
        }
        assert.deepEqual(events, [{ seq: 1, type: 'stdout', text: 'é' }]);
    }
});
