// SPDX-License-Identifier: Apache-2.0
//
// Commands and files of a sandbox, as the AI SDK's interface promises them, against a real server.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Client } from 'cellkeep';
import { CellkeepSandbox, FileError, OutOfTime, SandboxBroken, TooMuchOutput } from 'cellkeep/ai-sdk';

import { broken, bytes, gone, within } from './support.mjs';

const textOf = async (stream) => new TextDecoder().decode(await new Response(stream).arrayBuffer());
const refused = (code) => (error) => error instanceof FileError && error.code === code;

test('a command that fails is a value', async () => {
    await within({ env: { FROM: 'session' } }, async (sandbox) => {
        assert.deepEqual(await sandbox.run({ command: 'echo out; echo err >&2; exit 3' }), {
            exitCode: 3,
            stdout: 'out\n',
            stderr: 'err\n',
        });
        const { run } = sandbox; // As what is handed on.
        const said = await run({ command: 'pwd; cd /; echo $FROM$X', env: { X: '1' } });
        assert.equal(said.stdout, '/workspace\nsession1\n');
        await run({ command: 'mkdir -p a/b' });
        assert.equal((await run({ command: 'pwd', workingDirectory: 'a/b' })).stdout, '/workspace/a/b\n');
        assert.equal((await run({ command: 'pwd', workingDirectory: '/tmp' })).stdout, '/tmp\n');
        assert.equal((await run({ command: 'no-such-program' })).exitCode, 127);
        assert.equal((await run({ command: 'kill -TERM $$' })).exitCode, 143);
        assert.equal((await run({ command: 'true', workingDirectory: '/none' })).exitCode, 127);
        const long = `: ${'x'.repeat(100_000)}\necho end; ls -A /workspace`;
        assert.equal((await run({ command: long })).stdout, 'end\na\n');
    });
});

test('what breaks the sandbox is no exit code', async () => {
    await within({ limits: { memory_mb: 256 }, timeout_ms: 120_000 }, async (sandbox) => {
        const hungry = 'python3 -c "x = bytearray(1 << 30); x[::4096] = bytes(len(x[::4096]))"';
        await assert.rejects(sandbox.run({ command: hungry }), broken('oom'));
        await assert.rejects(sandbox.run({ command: 'sh -c "kill -KILL \\$\\$"; exit $?' }), broken('oom'));
        await assert.rejects(sandbox.run({ command: 'sleep infinity', timeout_ms: 100 }), (error) => {
            return error instanceof OutOfTime && error instanceof SandboxBroken && error.reason === 'timeout';
        });
        await assert.rejects(sandbox.run({ command: 'yes' }), TooMuchOutput);
        await gone(sandbox, 'yes|sleep');
        const crowd = Array.from({ length: 33 }, () => sandbox.spawn({ command: 'sleep infinity' }));
        const ends = await Promise.allSettled(crowd);
        const out = ends.filter((one) => one.status === 'rejected').map((one) => one.reason.reason);
        assert.deepEqual(out, ['capacity']);
        const waits = ends.filter((one) => one.status === 'fulfilled').map((one) => one.value.wait());
        await sandbox.close();
        const told = await Promise.allSettled(waits);
        assert.ok(told.every((one) => one.status === 'rejected' && one.reason.reason === 'dead'), JSON.stringify(told));
        await assert.rejects(sandbox.run({ command: 'true' }), broken('dead'));
        await assert.rejects(sandbox.readTextFile({ path: 'a' }), broken('dead'));
        await sandbox.close();
    });
});

test('a sandbox that cannot be made says why', async () => {
    await assert.rejects(CellkeepSandbox.create({ token: 'wrong' }), broken('refused'));
    await assert.rejects(CellkeepSandbox.create({ language: 'none' }), broken('refused'));
    await assert.rejects(CellkeepSandbox.create({ url: 'http://127.0.0.1:1', retries: 0 }), broken('unreachable'));
    const full = async () =>
        new Response('{"type": "/problems/limit-reached", "title": "full"}', {
            status: 429,
            headers: { 'Retry-After': '0' },
        });
    await assert.rejects(CellkeepSandbox.create({ fetch: full, patience_ms: 0 }), broken('capacity'));
    let asked = 0;
    const soon = async (url, init) => (++asked < 3 && init.method === 'POST' ? full() : fetch(url, init));
    const late = await CellkeepSandbox.create({ fetch: soon });
    assert.equal(asked, 3);
    await late.close();
    const mine = { task: 'T-2' };
    const cut = async (url, init) => {
        const answer = await fetch(url, init);
        if (init.method === 'POST') {
            await answer.arrayBuffer();
            throw new TypeError('fetch failed');
        }
        return answer;
    };
    const found = await CellkeepSandbox.create({ fetch: cut, metadata: mine });
    assert.equal(found.session.info.metadata.task, 'T-2');
    const ids = [];
    for await (const info of new Client().sessions({ metadata: mine })) {
        ids.push(info.id);
    }
    assert.deepEqual(ids, [found.id]);
    await found.close();
});

test('what is aborted is killed, and says what it was aborted with', async () => {
    await within({}, async (sandbox) => {
        const reason = new RangeError('enough');
        const abortSignal = AbortSignal.abort(reason);
        await assert.rejects(sandbox.run({ command: 'true', abortSignal }), reason);
        await assert.rejects(sandbox.spawn({ command: 'true', abortSignal }), reason);
        await assert.rejects(sandbox.readTextFile({ path: 'a', abortSignal }), reason);
        await assert.rejects(sandbox.writeTextFile({ path: 'a', content: '', abortSignal }), reason);
        const stop = new AbortController();
        const process = await sandbox.spawn({ command: 'echo on; sleep infinity', abortSignal: stop.signal });
        const reader = process.stdout.getReader();
        assert.equal(new TextDecoder().decode((await reader.read()).value), 'on\n');
        await sandbox.run({ command: 'until pgrep sleep; do :; done', timeout_ms: 20_000 });
        stop.abort(reason);
        await assert.rejects(process.wait(), reason);
        await assert.rejects(reader.read(), reason);
        const timed = AbortSignal.timeout(100);
        await assert.rejects(sandbox.run({ command: 'sleep infinity', abortSignal: timed }), { name: 'TimeoutError' });
        await gone(sandbox, 'sleep');
    });
});

test('a spawned command has streams', async () => {
    await within({}, async (sandbox) => {
        const plain = await sandbox.spawn({ command: 'echo out; echo err >&2; exit 4' });
        assert.equal('stdin' in plain, false);
        assert.ok(plain.pid > 0);
        assert.deepEqual(await Promise.all([textOf(plain.stdout), textOf(plain.stderr)]), ['out\n', 'err\n']);
        assert.deepEqual(await plain.wait(), { exitCode: 4 });
        const size = 5 << 20;
        const cat = await sandbox.spawn({ command: 'sleep 1; cat', stdin: true });
        const writer = cat.stdin.getWriter();
        const written = writer.write(new Uint8Array(size).fill(97)).then(() => writer.close());
        assert.equal((await textOf(cat.stdout)).length, size);
        await written;
        assert.deepEqual(await cat.wait(), { exitCode: 0 });
        const flood = await sandbox.spawn({ command: 'yes' });
        await flood.stderr.cancel();
        await flood.kill();
        await flood.kill();
        assert.deepEqual(await flood.wait(), { exitCode: 137 });
        const unread = await sandbox.spawn({ command: 'head -c 100000 /dev/zero; exit 5' });
        assert.deepEqual(await unread.wait(), { exitCode: 5 });
        const ended = await sandbox.spawn({ command: 'true', stdin: true });
        await ended.wait();
        await assert.rejects(ended.stdin.getWriter().write(bytes('late')), (error) => error.status === 409);
    });
});

test('files are those that commands see', async () => {
    await within({}, async (sandbox) => {
        await sandbox.writeTextFile({ path: 'a/b.txt', content: 'one\ntwo\nthree\n' });
        assert.equal((await sandbox.run({ command: 'cat a/b.txt' })).stdout, 'one\ntwo\nthree\n');
        await sandbox.run({ command: 'printf té > /tmp/t; ln -s /tmp/t link; ln -s gone dangling; mkfifo fifo' });
        assert.equal(await sandbox.readTextFile({ path: 'link' }), 'té');
        assert.equal(await sandbox.readTextFile({ path: '/tmp/t', encoding: 'latin1' }), 'tÃ©');
        const lines = (startLine, endLine) => sandbox.readTextFile({ path: 'a/b.txt', startLine, endLine });
        assert.deepEqual([await lines(2, 2), await lines(3)], ['two', 'three\n']);
        assert.equal(await lines(1, 99), 'one\ntwo\nthree\n');
        const big = Uint8Array.from({ length: 3 << 20 }, (_, at) => at & 0xff);
        await sandbox.writeFile({ path: '/tmp/new/big', content: new Blob([big]).stream() });
        assert.ok(Buffer.from(await sandbox.readBinaryFile({ path: '/tmp/new/big' })).equals(Buffer.from(big)));
        await sandbox.writeBinaryFile({ path: '/tmp/new/big', content: new Uint8Array() });
        assert.equal(await textOf(await sandbox.readFile({ path: '/tmp/new/big' })), '');
        assert.deepEqual(await sandbox.stat({ path: 'link' }), { type: 'file', size: 3 });
        assert.equal((await sandbox.stat({ path: 'a' })).type, 'directory');
        assert.equal((await sandbox.stat({ path: '/dev/null' })).type, 'other');
        const entries = (await sandbox.listDirectory({ path: '.' })).sort((a, b) => (a.name < b.name ? -1 : 1));
        assert.deepEqual(entries.map((one) => `${one.name} ${one.type}`), [
            'a directory',
            'dangling symlink',
            'fifo other',
            'link symlink',
        ]);
        assert.equal(await sandbox.deleteFile({ path: 'dangling' }), true);
        assert.equal(await sandbox.deleteFile({ path: 'link' }), true);
        assert.equal((await sandbox.stat({ path: '/tmp/t' })).size, 3);
    });
});

test('files that are not there are null, and what cannot be done is refused', async () => {
    await within({}, async (sandbox) => {
        await sandbox.writeTextFile({ path: 'a/b', content: 'x' });
        for (const path of ['none', 'none/b', 'a/b/c']) {
            assert.equal(await sandbox.readFile({ path }), null);
            assert.equal(await sandbox.readTextFile({ path }), null);
            assert.equal(await sandbox.stat({ path }), null);
            assert.equal(await sandbox.deleteFile({ path }), false);
        }
        assert.equal(await sandbox.listDirectory({ path: 'none' }), null);
        await assert.rejects(sandbox.listDirectory({ path: 'a/b' }), refused('ENOTDIR'));
        await assert.rejects(sandbox.readFile({ path: 'a' }), refused('EISDIR'));
        await assert.rejects(sandbox.deleteFile({ path: 'a' }), refused('EISDIR'));
        await assert.rejects(sandbox.writeTextFile({ path: 'a', content: '' }), refused('EISDIR'));
        await assert.rejects(sandbox.writeTextFile({ path: 'a/b/c', content: '' }), refused('EEXIST'));
        await assert.rejects(sandbox.writeTextFile({ path: '/usr/x', content: '' }), FileError);
        for (const path of ['', 'a\0b']) {
            await assert.rejects(sandbox.readFile({ path }), refused('EINVAL'));
            await assert.rejects(sandbox.writeTextFile({ path, content: '' }), refused('EINVAL'));
        }
        await assert.rejects(sandbox.readFile({ path: '/dev/zero' }), TooMuchOutput);
        await assert.rejects(sandbox.readTextFile({ path: 'a/b', encoding: 'none' }), RangeError);
        await assert.rejects(sandbox.readTextFile({ path: 'a/b', startLine: 0 }), RangeError);
        await assert.rejects(sandbox.readTextFile({ path: 'a/b', endLine: 1.5 }), RangeError);
        await assert.rejects(sandbox.writeTextFile({ path: 'a/b', content: '', encoding: 'utf-16le' }), RangeError);
        await assert.rejects(sandbox.run({ command: 'a\0b' }), TypeError);
        for (const timeout_ms of [0, -1, NaN]) {
            await assert.rejects(sandbox.run({ command: 'true', timeout_ms }), RangeError);
        }
        assert.throws(() => new CellkeepSandbox(sandbox.session, { cwd: '' }), FileError);
        await assert.rejects(sandbox.run({ command: 'true', env: { 'A=B': 'x' } }), broken('refused'));
        assert.equal((await sandbox.run({ command: 'ls -A' })).stdout, 'a\n');
    });
});
