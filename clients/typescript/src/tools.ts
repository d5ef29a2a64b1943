// SPDX-License-Identifier: Apache-2.0
//
// Functions of this program that code in a session may call: tools lent to one execution.

import { ProblemError } from './errors.js';
import type { Event } from './events.js';
import type { Http } from './http.js';
import type { LentTool, ToolAnswer } from './schema.js';

export type Tool = {
    description?: string;
    /** JSON Schema of its arguments: shown to the code, not checked. */
    input_schema?: Record<string, unknown>;
    /** Returns what JSON can say, or a promise of it. What it throws is raised inside. */
    call: (args: Record<string, unknown>) => unknown;
};

/** Tools by their names; dots make groups: "github.create_issue". */
export type Tools = Record<string, Tool>;

export function toolsOnTheWire(tools: Tools): LentTool[] {
    // A schema's members are any JSON; the generated type knows none of them.
    return Object.entries(tools).map(([name, { call: _call, ...rest }]) => ({ name, ...rest }) as LentTool);
}

/** Runs the tool of an event `tool_call`, and lets the code go on. */
export async function takeCall(http: Http, execution: string, event: Event, tools: Tools): Promise<void> {
    const send = (json: ToolAnswer): Promise<void> =>
        http.nothing({
            method: 'POST',
            path: `${execution}/tool_calls/${encodeURIComponent(event.call ?? '')}`,
            json,
            repeatable: false,
        });
    try {
        await send(await answerOf(event, tools));
    } catch (error) {
        if (!(error instanceof ProblemError)) {
            throw error;
        }
        if (error.status === 413) {
            await send({ error: error.message });
        } else if (error.status !== 409) {
            throw error; // 409: the code no longer waits, it was interrupted.
        }
    }
}

async function answerOf(event: Event, tools: Tools): Promise<ToolAnswer> {
    try {
        const result = await tools[event.tool ?? '']?.call(event.arguments ?? {});
        JSON.stringify(result); // What is no JSON is the tool's failure.
        return { result: result ?? null };
    } catch (error) {
        return { error: String(error) };
    }
}
