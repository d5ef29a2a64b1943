// SPDX-License-Identifier: Apache-2.0
//
// Commands beside the interpreter, against a real server, which CELLKEEP_URL and CELLKEEP_TOKEN name.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Client, ConnectionFailed, Output, outputBytes, Process, ProblemError } from 'cellkeep';

import { cut, spoiling, within } from './support.mjs';

const refused = (kind) => (error) => error instanceof ProblemError && error.kind === kind;

// Kills a process, and waits until it has ended.
async function killed(process) {
    for await (const event of process.events()) {
        if (event.type === 'stdout') {
            await process.kill();
        } else if (event.type === 'exited') {
            assert.equal(event.process.end.signal, 'SIGKILL');
        }
    }
}

test('a command is started, written to and read', async () => {
    await within({}, async (session) => {
        const options = { stdin: 'open', label: 'echo', env: { X: '1' }, cwd: '/tmp' };
        const process = await session.startProcess(['cat'], options);
        assert.ok(process instanceof Process);
        assert.deepEqual([process.info.state, process.info.cwd, process.info.stdin], ['running', '/tmp', 'open']);
        await process.write('téxt\n');
        await process.write(Uint8Array.of(0xff, 0x0a), { close: true });
        const output = await process.wait();
        assert.ok(output instanceof Output);
        assert.deepEqual([...output.stdout], [...new TextEncoder().encode('téxt\n'), 0xff, 0x0a]);
        assert.equal(output.missed, 0);
        assert.deepEqual([output.info.end.exit_code, output.info.end.reason], [0, 'exited']);
        assert.equal(process.info.state, 'exited');
        await assert.rejects(process.write('late'), (error) => error.status === 409);
        await assert.rejects(process.closeStdin(), (error) => error.status === 409);
    });
});

test('a line is the shell\'s, a list is not, and both ends are told', async () => {
    await within({}, async (session) => {
        const output = await (await session.startProcess('echo one; echo two >&2; exit 4')).wait();
        assert.deepEqual([output.text, output.info.end.exit_code], ['one\n', 4]);
        assert.equal(new TextDecoder().decode(output.stderr), 'two\n');
        const env = { env: { RATE: '2' } };
        assert.equal((await (await session.startProcess('echo $RATE', env)).wait()).text, '2\n');
        assert.equal((await (await session.startProcess(['echo', '$RATE'], env)).wait()).text, '$RATE\n');
        const lost = await (await session.startProcess(['/no/such/program'])).wait();
        assert.equal(lost.info.end.reason, 'not_started');
        assert.match(lost.info.end.error, /No such file/);
    });
});

test('what cannot be started or sent is refused with the problem', async () => {
    await within({}, async (session) => {
        const field = (pointer) => (error) => error.status === 422 && error.errors[0].pointer === pointer;
        await assert.rejects(session.startProcess([]), (error) => error.status === 422);
        await assert.rejects(session.startProcess(''), (error) => error.status === 422);
        await assert.rejects(session.startProcess(['cat'], { stdin: 'ajar' }), field('/stdin'));
        await assert.rejects(session.startProcess(['cat'], { label: 'x'.repeat(129) }), field('/label'));
        await assert.rejects(session.startProcess(['cat'], { tty: { rows: 0, cols: 80 } }), field('/tty/rows'));
        await assert.rejects(session.process('prc_none'), refused('unknown-process'));
        await assert.rejects(session.process('../files'), (error) => error.status === 404);
        const process = await session.startProcess('echo on; sleep infinity');
        await assert.rejects(process.write('x'), (error) => error.status === 409);
        await assert.rejects(process.resize(10, 10), (error) => error.status === 409);
        await assert.rejects(process.signal('SIGNOTHING'), (error) => error.status === 422);
        await killed(process);
        await assert.rejects(process.kill(), refused('unknown-process'));
        await assert.rejects(process.wait(), refused('unknown-process'));
        await session.close();
        await assert.rejects(session.startProcess(['true']), (error) => [404, 410].includes(error.status));
    });
});

test('input that is not read is bounded', async () => {
    await within({}, async (session) => {
        const process = await session.startProcess(['sleep', 'infinity'], { stdin: 'open' });
        const piece = new Uint8Array(1 << 19);
        await process.write(piece);
        await assert.rejects(async () => {
            for (let sent = 0; sent < 8; ++sent) {
                await process.write(piece);
            }
        }, (error) => error.status === 429);
        await assert.rejects(process.write('x'.repeat((1 << 20) + 1)), (error) => [413, 422].includes(error.status));
        await process.kill();
    });
});

test('a process is listed, found again by its id, signalled and killed', async () => {
    await within({}, async (session) => {
        const first = await session.startProcess(['sleep', 'infinity'], { label: 'first' });
        const second = await session.startProcess('echo on; sleep infinity', { label: 'second' });
        assert.deepEqual((await session.processes()).map((one) => one.info.label), ['first', 'second']);
        const again = await session.process(first.id);
        await again.signal('TERM');
        assert.deepEqual((await first.wait()).info.end.signal, 'SIGTERM');
        assert.equal((await again.refresh()).state, 'exited');
        await killed(second);
        assert.deepEqual((await session.processes()).map((one) => one.id), [first.id]);
        await first.kill();
        assert.deepEqual(await session.processes(), []);
    });
});

test('a terminal has a size, and its keys are input', async () => {
    await within({}, async (session) => {
        const shell = 'read line; stty size; echo got $line; echo $TERM';
        const process = await session.startProcess(shell, { tty: { rows: 30, cols: 100, term: 'dumb' } });
        assert.deepEqual(process.info.tty, { rows: 30, cols: 100 });
        await process.resize(40, 120);
        assert.deepEqual((await process.refresh()).tty, { rows: 40, cols: 120 });
        await assert.rejects(process.resize(0, 120), (error) => error.status === 422);
        await process.write('text\n');
        assert.match((await process.wait()).text.replaceAll('\r', ''), /40 120\ngot text\ndumb\n$/);
        const endless = await session.startProcess('echo on; exec cat', { tty: {} });
        let text = '';
        for await (const event of endless.events()) {
            text += event.text ?? '';
            // What cat writes comes twice: the terminal shows it, too.
            if (text === 'on\r\n') {
                await endless.write('line\n');
            } else if (text === 'on\r\nline\r\nline\r\n') {
                await endless.write('\x03');
            }
        }
        assert.equal((await endless.refresh()).end.signal, 'SIGINT');
    });
});

test('a reader goes on where it stopped', async () => {
    await within({}, async (session) => {
        const process = await session.startProcess(['cat'], { stdin: 'open' });
        await process.write('first\n');
        let place;
        for await (const event of process.events()) {
            if (event.type === 'stdout') {
                place = event.seq;
                break;
            }
        }
        assert.equal(place, 6);
        await process.write('second\n', { close: true });
        let rest = '';
        for await (const event of process.events({ after: place })) {
            rest += event.type === 'stdout' ? new TextDecoder().decode(outputBytes(event)) : '';
        }
        assert.equal(rest, 'second\n');
    });
});

test('a broken stream goes on without a gap or a repeat, also of bytes that are no text', async () => {
    const asked = [];
    const lossy = new Client({
        fetch: spoiling((answer, url, init) => {
            if (!url.pathname.endsWith('/events')) {
                return answer;
            }
            asked.push(init.headers['Last-Event-ID']);
            return asked.length < 4 ? cut(answer, 400) : answer;
        }),
    });
    await within({}, async (session) => {
        const code =
            'import os, threading\nfor n in range(40):\n os.write(1, bytes([n, 255]))\n threading.Event().wait(0.01)';
        const started = await session.startProcess(['python3', '-c', code]);
        const output = await (await (await lossy.session(session.id)).process(started.id)).wait();
        assert.equal(output.missed, 0);
        assert.deepEqual([...output.stdout], Array.from({ length: 80 }, (_, at) => (at % 2 ? 255 : at / 2)));
        assert.ok(asked.length >= 4, `${asked.length} connections`);
        assert.equal(asked[0], '0');
        assert.ok(Number(asked[3]) > 0);
    });
});

test('output beyond what the server keeps is a gap, unless the process waits for its reader', async () => {
    await within({}, async (session) => {
        const size = 4 << 20;
        const command = ['head', '-c', String(size), '/dev/zero'];
        const waiting = await (await session.startProcess(command, { when_full: 'wait' })).wait();
        assert.deepEqual([waiting.missed, waiting.stdout.length], [0, size]);
        const fast = await session.startProcess(command);
        while ((await fast.refresh()).state === 'running') {
            // It ends without a reader.
        }
        const late = await fast.wait();
        assert.ok(late.missed > 0);
        assert.equal(late.missed + late.stdout.length, size);
    });
});

test('an abort stops the reading, and the process lives on', async () => {
    await within({}, async (session) => {
        const process = await session.startProcess('echo on; sleep infinity');
        const stop = new AbortController();
        await assert.rejects(async () => {
            for await (const event of process.events({ signal: stop.signal })) {
                if (event.type === 'stdout') {
                    stop.abort(new RangeError('enough'));
                }
            }
        }, RangeError);
        await assert.rejects(process.wait({ signal: AbortSignal.abort(new RangeError('enough')) }), RangeError);
        assert.equal((await process.refresh()).state, 'running');
    });
});

test('a start is not repeated, and a server that is gone is said to be', async () => {
    let starts = 0;
    const lossy = new Client({
        fetch: spoiling((answer, url, init) => {
            if (init.method === 'POST' && url.pathname.endsWith('/processes')) {
                ++starts;
                throw new TypeError('fetch failed');
            }
            return answer;
        }),
    });
    const cutting = new Client({
        retries: 1,
        fetch: spoiling((answer, url) => (url.pathname.endsWith('/events') ? cut(answer, 0) : answer)),
    });
    await within({}, async (session) => {
        const same = await lossy.session(session.id);
        await assert.rejects(same.startProcess(['sleep', 'infinity']), ConnectionFailed);
        assert.equal(starts, 1);
        const [begun] = await session.processes();
        await assert.rejects((await (await cutting.session(session.id)).process(begun.id)).wait(), ConnectionFailed);
        await session.close();
        await assert.rejects(begun.refresh(), (error) => [404, 410].includes(error.status));
    });
});
