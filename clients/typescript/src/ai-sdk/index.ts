// SPDX-License-Identifier: Apache-2.0
//
// Sessions for the Vercel AI SDK (`ai` 7). Its types are met, and none of its code is needed.

import { SandboxBroken } from './reasons.js';

export { FileError, type DirectoryEntry, type FileStat } from './files.js';
export { OutOfTime, SandboxBroken, TooMuchOutput, type Reason } from './reasons.js';
export { CellkeepSandbox, type CommandOptions, type PathOptions, type SandboxOptions } from './sandbox.js';
export { type Spawned, type WritableSpawned } from './spawned.js';
export { sandboxTools, type InputSchema, type SandboxTool, type SandboxTools } from './tools.js';

/**
 * A condition for `stopWhen` that ends the run with what broke the sandbox: the SDK itself tells the model of each
 * error of a tool, and goes on. A command that ran out of time ends no run: its sandbox lives on.
 */
export function endWhenBroken(options: { steps: readonly { content: readonly object[] }[] }): false {
    for (const part of options.steps.at(-1)?.content ?? []) {
        const { type, error } = part as { type?: unknown; error?: unknown };
        if (type === 'tool-error' && error instanceof SandboxBroken && error.reason !== 'timeout') {
            throw error;
        }
    }
    return false;
}
