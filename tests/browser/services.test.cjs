// SPDX-License-Identifier: Apache-2.0
//
// @jupyterlab/services from npm, as any JavaScript program would use it, straight against the
// server's port.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { after, before, test } = require('node:test');
const ws = require('ws');
const {
    ContentsManager,
    KernelManager,
    KernelSpecManager,
    ServerConnection,
    SessionManager,
} = require('@jupyterlab/services');
const { scratch, startGateway } = require('./support/processes.cjs');

let folder;
let gateway;
let settings;
let kernels;
// Every socket that was opened, so that a test can cut the line.
const sockets = [];

class WatchedSocket extends ws {
    constructor(...args) {
        super(...args);
        sockets.push(this);
    }
}

before(async () => {
    folder = scratch();
    gateway = await startGateway(folder);
    settings = ServerConnection.makeSettings({
        baseUrl: gateway.url,
        wsUrl: gateway.url.replace('http', 'ws'),
        token: gateway.token,
        WebSocket: WatchedSocket,
        appendToken: true,
    });
    kernels = new KernelManager({ serverSettings: settings });
    await kernels.ready;
});

after(async () => {
    kernels?.dispose();
    const how = await gateway?.program.stop();
    if (how !== 'exit status 0') {
        console.log(gateway?.program.output());
    }
    fs.rmSync(folder, { recursive: true, force: true });
    assert.equal(how, 'exit status 0');
});

// Runs code and returns its reply and its outputs.
async function run(kernel, code, options = {}) {
    const future = kernel.requestExecute({ code, ...options.content });
    const outputs = [];
    future.onIOPub = message => {
        outputs.push(message);
        options.onOutput?.(message);
    };
    if (options.onStdin) {
        future.onStdin = message => options.onStdin(message, future);
    }
    const reply = await future.done;
    return { reply: reply.content, outputs };
}

function text(outputs, name = 'stdout') {
    return outputs
        .filter(m => m.header.msg_type === 'stream' && m.content.name === name)
        .map(m => m.content.text)
        .join('');
}

async function withKernel(body) {
    const kernel = await kernels.startNew({ name: 'python3' });
    try {
        await kernel.info;
        await body(kernel);
    } finally {
        if (!kernel.isDisposed) {
            await kernel.shutdown();
            kernel.dispose();
        }
    }
}

// The kernel has said that it is running our cell: resolves with that future.
function started(kernel, code) {
    return new Promise(resolve => {
        const future = kernel.requestExecute({ code });
        future.onIOPub = message => {
            if (message.header.msg_type === 'stream') {
                resolve(future);
            }
        };
    });
}

test('the kernelspecs name the default kernel', async () => {
    const specs = new KernelSpecManager({ serverSettings: settings });
    await specs.ready;
    assert.ok(specs.specs.default in specs.specs.kernelspecs);
    assert.equal(specs.specs.kernelspecs[specs.specs.default].language, 'python');
    specs.dispose();
});

test('a kernel starts, is listed, runs code with every kind of output, and is gone', async () => {
    let id;
    await withKernel(async kernel => {
        id = kernel.id;
        await kernels.refreshRunning();
        assert.ok([...kernels.running()].some(model => model.id === id));
        const { reply, outputs } = await run(
            kernel,
            `import sys
print('out')
print('err', file=sys.stderr)
from IPython.display import display, HTML
display(HTML('<b>bold</b>'))
6 * 7`
        );
        assert.equal(reply.status, 'ok');
        assert.equal(text(outputs), 'out\n');
        assert.equal(text(outputs, 'stderr'), 'err\n');
        const display = outputs.find(m => m.header.msg_type === 'display_data');
        assert.equal(display.content.data['text/html'], '<b>bold</b>');
        const result = outputs.find(m => m.header.msg_type === 'execute_result');
        assert.equal(result.content.data['text/plain'], '42');
        assert.equal(result.content.execution_count, reply.execution_count);
        const failed = await run(kernel, '1 / 0');
        assert.equal(failed.reply.status, 'error');
        assert.equal(failed.reply.ename, 'ZeroDivisionError');
    });
    await kernels.refreshRunning();
    assert.ok(![...kernels.running()].some(model => model.id === id));
});

test('an endless loop is interrupted and the kernel goes on', async () => {
    await withKernel(async kernel => {
        const future = await started(kernel, "print('on', flush=True)\nwhile True: pass");
        await kernel.interrupt();
        const reply = await future.done;
        assert.equal(reply.content.status, 'error');
        assert.equal(reply.content.ename, 'KeyboardInterrupt');
        const { outputs } = await run(kernel, "print('alive')");
        assert.equal(text(outputs), 'alive\n');
    });
});

test('a restart forgets variables and keeps the kernel id', async () => {
    await withKernel(async kernel => {
        const { id } = kernel;
        await run(kernel, 'x = 1');
        await kernel.restart();
        assert.equal(kernel.id, id);
        const { reply } = await run(kernel, 'x');
        assert.equal(reply.ename, 'NameError');
    });
});

test('input() asks and gets the answer', async () => {
    await withKernel(async kernel => {
        const prompts = [];
        const { reply, outputs } = await run(kernel, "name = input('Name? ')\nprint('Hello', name)", {
            content: { allow_stdin: true },
            onStdin: (message, future) => {
                prompts.push([message.content.prompt, message.content.password]);
                future.sendInputReply({ value: 'Ada', status: 'ok' }, message.header);
            },
        });
        assert.equal(reply.status, 'ok');
        assert.deepEqual(prompts, [['Name? ', false]]);
        assert.equal(text(outputs), 'Hello Ada\n');
    });
});

test('completion and inspection count positions as Jupyter does', async () => {
    await withKernel(async kernel => {
        await run(kernel, 'number_of_cells = 3');
        const code = "'😀'; number_of_c";
        const complete = await kernel.requestComplete({ code, cursor_pos: [...code].length });
        assert.equal(complete.content.status, 'ok');
        assert.ok(complete.content.matches.includes('number_of_cells'));
        assert.equal(complete.content.cursor_start, [..."'😀'; "].length);
        const inspect = await kernel.requestInspect({ code: 'len', cursor_pos: 3, detail_level: 0 });
        assert.ok(inspect.content.found);
        assert.match(inspect.content.data['text/plain'], /number of items/);
    });
});

test('a comm carries messages and binary buffers both ways', async () => {
    await withKernel(async kernel => {
        await run(
            kernel,
            `from comm import get_comm_manager
def opened(comm, message):
    @comm.on_msg
    def heard(message):
        comm.send({'heard': message['content']['data']}, buffers=[bytes(reversed(b)) for b in message['buffers']])
get_comm_manager().register_target('echo', opened)`
        );
        const comm = kernel.createComm('echo');
        const answer = new Promise(resolve => {
            comm.onMsg = resolve;
        });
        await comm.open({}).done;
        await comm.send({ said: 'hello' }, {}, [new Uint8Array([1, 2, 3]).buffer]).done;
        const message = await answer;
        assert.deepEqual(message.content.data, { heard: { said: 'hello' } });
        assert.equal(message.buffers.length, 1);
        const { buffer, byteOffset, byteLength } = message.buffers[0];
        const bytes = buffer
            ? new Uint8Array(buffer, byteOffset, byteLength)
            : new Uint8Array(message.buffers[0]);
        assert.deepEqual([...bytes], [3, 2, 1]);
        await comm.close().done;
    });
});

test('a line that breaks in the middle of a cell loses nothing and doubles nothing', async () => {
    await withKernel(async kernel => {
        const count = 300;
        let cut = false;
        const { reply, outputs } = await run(
            kernel,
            `import time
for i in range(${count}):
    print(i, flush=True)
    time.sleep(0.01)`,
            {
                onOutput: message => {
                    if (!cut && message.header.msg_type === 'stream') {
                        cut = true;
                        // As a network failure does it: without a close frame.
                        sockets[sockets.length - 1].terminate();
                    }
                },
            }
        );
        assert.ok(cut);
        assert.equal(reply.status, 'ok');
        const expected = Array.from({ length: count }, (_, i) => `${i}\n`).join('');
        assert.equal(text(outputs), expected);
    });
});

test('two clients of one kernel see the same output', async () => {
    await withKernel(async kernel => {
        const other = kernels.connectTo({ model: kernel.model });
        await other.info;
        const seen = new Promise(resolve => {
            let said = '';
            other.iopubMessage.connect((_, message) => {
                if (message.header.msg_type === 'stream') {
                    said += message.content.text;
                    if (said.includes('last\n')) {
                        resolve(said);
                    }
                }
            });
        });
        await run(kernel, "for i in range(100): print(i)\nprint('last')");
        const expected = Array.from({ length: 100 }, (_, i) => `${i}\n`).join('') + 'last\n';
        assert.equal(await seen, expected);
        other.dispose();
    });
});

test('a session keeps the kernel of a notebook, and another client finds it', async () => {
    const sessions = new SessionManager({ serverSettings: settings, kernelManager: kernels });
    await sessions.ready;
    const session = await sessions.startNew({
        name: 'analysis.ipynb',
        path: 'analysis.ipynb',
        type: 'notebook',
        kernel: { name: 'python3' },
    });
    await session.kernel.info;
    const found = await sessions.findByPath('analysis.ipynb');
    assert.equal(found.kernel.id, session.kernel.id);
    await session.setPath('renamed.ipynb');
    await sessions.refreshRunning();
    assert.equal((await sessions.findById(session.id)).path, 'renamed.ipynb');
    const before = session.kernel.id;
    await session.changeKernel({ name: 'python3' });
    assert.notEqual(session.kernel.id, before);
    const { outputs } = await run(session.kernel, "print('new kernel')");
    assert.equal(text(outputs), 'new kernel\n');
    await session.shutdown();
    await sessions.refreshRunning();
    assert.equal(await sessions.findByPath('renamed.ipynb'), undefined);
    sessions.dispose();
});

// JupyterLab's own file browser and documents do exactly this, with this class.
test('the files of a session are saved, copied, moved, gone back to and removed', async () => {
    const contents = new ContentsManager({ serverSettings: settings });
    const folder = await contents.newUntitled({ path: '', type: 'directory' });
    const root = await contents.get('');
    assert.ok(root.content.some(entry => entry.path === folder.path && entry.type === 'directory'));

    const notebook = await contents.newUntitled({ path: folder.path, type: 'notebook' });
    const opened = await contents.get(notebook.path, { type: 'notebook', content: true, hash: true });
    assert.equal(opened.content.nbformat, 4);
    assert.match(opened.hash, /^[0-9a-f]{64}$/);
    opened.content.metadata.saved = 'ü';
    const saved = await contents.save(notebook.path, {
        type: 'notebook',
        format: 'json',
        content: opened.content,
    });
    assert.equal(saved.path, notebook.path);
    const checkpoint = await contents.createCheckpoint(notebook.path);
    assert.deepEqual(await contents.listCheckpoints(notebook.path), [checkpoint]);
    opened.content.metadata.saved = 'later';
    await contents.save(notebook.path, { type: 'notebook', format: 'json', content: opened.content });
    await contents.restoreCheckpoint(notebook.path, checkpoint.id);
    assert.equal((await contents.get(notebook.path)).content.metadata.saved, 'ü');
    await contents.deleteCheckpoint(notebook.path, checkpoint.id);
    assert.deepEqual(await contents.listCheckpoints(notebook.path), []);

    const copy = await contents.copy(notebook.path, folder.path);
    assert.equal(copy.name, 'Untitled-Copy1.ipynb');
    const moved = await contents.rename(copy.path, `${folder.path}/moved.ipynb`);
    assert.equal(moved.name, 'moved.ipynb');
    await assert.rejects(contents.get(copy.path), error => error.response.status === 404);
    await assert.rejects(contents.delete(folder.path), error => error.response.status === 400);

    // The kernel of a notebook there sees the files.
    const sessions = new SessionManager({ kernelManager: kernels, serverSettings: settings });
    await sessions.ready;
    const session = await sessions.startNew({
        name: 'moved.ipynb',
        path: moved.path,
        type: 'notebook',
        kernel: { name: 'python3' },
    });
    const { outputs } = await run(session.kernel, 'import os; print(sorted(os.listdir()))');
    assert.equal(text(outputs), "['.ipynb_checkpoints', 'Untitled.ipynb', 'moved.ipynb']\n");
    const kernel = session.kernel.id;
    await session.shutdown();
    assert.equal((await contents.get(moved.path)).name, 'moved.ipynb');
    await contents.delete(moved.path);
    const left = (await contents.get(folder.path)).content.map(entry => entry.name);
    assert.deepEqual(left, ['Untitled.ipynb']);
    await kernels.shutdown(kernel);
    await assert.rejects(contents.get(folder.path), error => error.response.status === 404);
    sessions.dispose();
    contents.dispose();
});

test('a wrong token is refused in words', async () => {
    const wrong = ServerConnection.makeSettings({
        baseUrl: gateway.url,
        token: 'wrong',
        appendToken: true,
    });
    const response = await ServerConnection.makeRequest(`${gateway.url}/api/kernels`, {}, wrong);
    assert.ok([401, 403].includes(response.status), String(response.status));
    assert.equal(typeof (await response.json()).message, 'string');
});
