// SPDX-License-Identifier: Apache-2.0
//
// What the tests share: sandboxes that end, and models that do what a list says.
import assert from 'node:assert/strict';

import { CellkeepSandbox } from 'cellkeep/ai-sdk';
import { MockLanguageModelV4 } from 'ai/test';

export async function within(options, body) {
    const sandbox = await CellkeepSandbox.create(options);
    try {
        return await body(sandbox);
    } finally {
        await sandbox.close();
    }
}

// Returns when no process of these names is left, and fails if one stays.
export async function gone(sandbox, names) {
    const command = `while pgrep '${names}' > /dev/null; do :; done`;
    assert.equal((await sandbox.run({ command, timeout_ms: 20_000 })).exitCode, 0);
}

export const broken = (reason) => (error) => error.name === 'SandboxBroken' && error.reason === reason;
export const bytes = (text) => new TextEncoder().encode(text);

// A step of a model: [tool, input] or its last words.
function step(said, number) {
    const call = ([toolName, input]) => ({
        type: 'tool-call',
        toolCallId: `call-${number}`,
        toolName,
        input: JSON.stringify(input),
    });
    const last = typeof said === 'string';
    return {
        content: [last ? { type: 'text', text: said } : call(said)],
        finishReason: { unified: last ? 'stop' : 'tool-calls', raw: undefined },
        usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
        warnings: [],
    };
}

export const modelThat = (...steps) => new MockLanguageModelV4({ doGenerate: steps.map(step) });

// What the model was told of its last call of a tool.
export function toldTo(model) {
    const [result] = model.doGenerateCalls.at(-1).prompt.at(-1).content;
    return result.output;
}
