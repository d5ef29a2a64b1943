// SPDX-License-Identifier: Apache-2.0
//
// Whole runs of the AI SDK with its mock model: tools in a sandbox, and what ends a run.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { generateText, isStepCount, streamText, tool, ToolLoopAgent } from 'ai';
import { MockLanguageModelV4, simulateReadableStream } from 'ai/test';
import { z } from 'zod';
import { endWhenBroken, sandboxTools } from 'cellkeep/ai-sdk';

import { broken, gone, modelThat, toldTo, within } from './support.mjs';

const stopWhen = [isStepCount(20), endWhenBroken];
const ask = (sandbox, model, more = {}) =>
    generateText({ model, prompt: 'Do it.', tools: sandboxTools(sandbox), stopWhen, ...more });

test('a model works with files, commands and an interpreter', async () => {
    await within({}, async (sandbox) => {
        const model = modelThat(
            ['write_file', { path: 'in/x.csv', content: '3\n5\n' }],
            ['run_command', { command: 'wc -l < in/x.csv; exit 2' }],
            ['run_code', { code: 'n = sum(map(int, open("in/x.csv")))' }],
            ['run_code', { code: 'print("n is"); n' }],
            ['run_code', { code: '1 / 0' }],
            ['read_file', { path: 'in/x.csv', start_line: 2 }],
            ['read_file', { path: 'none' }],
            'done'
        );
        const done = await ask(sandbox, model);
        assert.equal(done.text, 'done');
        const outputs = done.steps.flatMap((one) => one.toolResults).map((one) => one.output);
        assert.deepEqual(outputs, [
            { bytes: 4 },
            { exit_code: 2, stdout: '2\n', stderr: '' },
            { status: 'ok', text: '', stderr: '', error: null },
            { status: 'ok', text: 'n is\n8', stderr: '', error: null },
            { status: 'error', text: '', stderr: '', error: 'ZeroDivisionError: division by zero' },
            { found: true, text: '5\n' },
            { found: false, text: '' },
        ]);
        const [first] = model.doGenerateCalls;
        const schema = first.tools.find((one) => one.name === 'run_command').inputSchema;
        assert.deepEqual([schema.required, schema.additionalProperties], [['command'], false]);
        assert.match(first.tools[0].description, /python/);
    });
});

test('the tools of others work in the sandbox that the SDK is given', async () => {
    await within({ description: 'It has no network.' }, async (sandbox) => {
        const shell = tool({
            description: 'Runs a command.',
            inputSchema: z.object({ command: z.string() }),
            execute: ({ command }, { abortSignal, experimental_sandbox }) =>
                experimental_sandbox.run({ command, abortSignal }),
        });
        const model = modelThat(['shell', { command: 'echo $((6 * 7))' }], 'done');
        const agent = new ToolLoopAgent({ model, tools: { shell }, instructions: sandbox.description, stopWhen });
        const done = await agent.generate({ prompt: 'Do it.', experimental_sandbox: sandbox });
        assert.deepEqual(done.steps[0].toolResults[0].output, { exitCode: 0, stdout: '42\n', stderr: '' });
        assert.match(JSON.stringify(model.doGenerateCalls[0].prompt), /bash.*It has no network\./);
    });
});

test('wrong input is refused before anything runs, and the model is told', async () => {
    await within({}, async (sandbox) => {
        const wrong = [
            ['run_command', {}],
            ['run_command', { command: '' }],
            ['run_command', { command: 'touch x', timeout_ms: 0 }],
            ['run_command', { command: 'touch x', timeout_ms: '5' }],
            ['run_command', { command: 'touch x', cwd: '/' }],
            ['run_command', ['touch x']],
            ['run_code', { code: 5 }],
            ['read_file', { path: '' }],
            ['read_file', { path: 'x', start_line: 1.5 }],
            ['write_file', { path: 'x' }],
            ['write_file', { path: 'x', content: '', ['__proto__x']: 1 }],
            ['no_tool', {}],
        ];
        for (const call of wrong) {
            const model = modelThat(call, 'done');
            assert.equal((await ask(sandbox, model)).text, 'done');
            assert.equal(toldTo(model).type, 'error-text', JSON.stringify(call));
        }
        assert.equal((await sandbox.run({ command: 'ls -A' })).stdout, '');
        const told = [
            [['read_file', { path: '/' }], /EISDIR/],
            [['read_file', { path: 'x'.repeat(40_000) }], /422/],
            [['run_code', { code: '1', timeout_ms: 1e12 }], /422/],
            [['run_code', { code: ' '.repeat(17 << 20) }], /413|422/],
            [['run_command', { command: 'touch x\0' }], /NUL/],
        ];
        for (const [call, said] of told) {
            const model = modelThat(call, 'done');
            assert.equal((await ask(sandbox, model)).text, 'done');
            assert.match(toldTo(model).value, said);
        }
        const patient = modelThat(['run_command', { command: 'ls -A', timeout_ms: 1e12 }], 'done');
        assert.equal((await ask(sandbox, patient)).steps[0].toolResults[0].output.stdout, '');
    });
});

test('what breaks the sandbox ends the run, and is no answer', async () => {
    const hungry = 'x = bytearray(1 << 30); x[::4096] = bytes(len(x[::4096]))';
    for (const call of [
        ['run_command', { command: `python3 -c "${hungry}"` }],
        ['run_code', { code: hungry }],
    ]) {
        await within({ limits: { memory_mb: 256 } }, async (sandbox) => {
            const model = modelThat(call, 'all is well');
            await assert.rejects(ask(sandbox, model), broken('oom'));
            assert.equal(model.doGenerateCalls.length, 1);
        });
    }
    await within({ limits: { executions: 1 } }, async (sandbox) => {
        const model = modelThat(['run_code', { code: '1' }], ['run_code', { code: '2' }], 'all is well');
        await assert.rejects(ask(sandbox, model), broken('capacity'));
    });
    await within({}, async (sandbox) => {
        await sandbox.session.close();
        for (const call of [
            ['run_code', { code: '1' }],
            ['run_command', { command: 'true' }],
            ['read_file', { path: 'x' }],
            ['write_file', { path: 'x', content: '' }],
        ]) {
            await assert.rejects(ask(sandbox, modelThat(call, 'all is well')), broken('dead'));
        }
    });
});

test('a stream ends with it, too', async () => {
    await within({}, async (sandbox) => {
        await sandbox.session.close();
        const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
        const call = { type: 'tool-call', toolCallId: 'c', toolName: 'run_code', input: '{"code": "1"}' };
        const finish = { type: 'finish', finishReason: { unified: 'tool-calls', raw: undefined }, usage };
        const chunks = [{ type: 'stream-start', warnings: [] }, call, finish];
        const model = new MockLanguageModelV4({
            doStream: async () => ({ stream: simulateReadableStream({ chunks, chunkDelayInMs: null }) }),
        });
        const tools = sandboxTools(sandbox);
        const run = streamText({ model, prompt: 'Do it.', tools, stopWhen });
        const seen = [];
        await assert.rejects(async () => {
            for await (const part of run.fullStream) {
                seen.push(part.type);
            }
        }, broken('dead'));
        assert.ok(seen.includes('tool-error'), String(seen));
        await assert.rejects(run.text, broken('dead'));
        assert.equal(model.doStreamCalls.length, 1);
    });
});

test('of a time limit the model is told, and its sandbox lives on', async () => {
    await within({}, async (sandbox) => {
        const model = modelThat(
            ['run_command', { command: 'sleep infinity', timeout_ms: 100 }],
            ['run_code', { code: 'while True: pass', timeout_ms: 100 }],
            ['run_command', { command: 'echo on' }],
            'done'
        );
        const done = await ask(sandbox, model);
        const errors = done.steps.flatMap((one) => one.content).filter((one) => one.type === 'tool-error');
        assert.deepEqual(errors.map((one) => one.error.reason), ['timeout', 'timeout']);
        assert.equal(done.steps[2].toolResults[0].output.stdout, 'on\n');
    });
});

test('a run that is aborted stops what runs inside', async () => {
    await within({}, async (sandbox) => {
        const model = modelThat(['run_command', { command: 'sleep infinity' }], 'done');
        const done = await ask(sandbox, model, { timeout: { toolMs: 200 } });
        assert.equal(done.text, 'done');
        assert.equal(toldTo(model).type, 'error-text');
        await gone(sandbox, 'sleep');
    });
});

test('a model is not given more text than it takes', async () => {
    await within({}, async (sandbox) => {
        const model = modelThat(['run_command', { command: 'echo first; yes | head -c 1000000; echo last' }], 'done');
        const [{ output }] = (await ask(sandbox, model)).steps[0].toolResults;
        assert.ok(output.stdout.length < 70_000);
        assert.match(output.stdout, /^first\n[^]*characters left out[^]*last\n$/);
    });
});
