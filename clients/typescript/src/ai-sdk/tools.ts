// SPDX-License-Identifier: Apache-2.0
//
// What a model may do in a sandbox, as tools of the AI SDK. They need none of its code: a tool is an object, and the
// schema of its input a Standard Schema (https://standardschema.dev).

import { ProblemError } from '../errors.js';
import { checkResult, requests, SandboxBroken } from './reasons.js';
import type { CellkeepSandbox } from './sandbox.js';

/** Characters of each text that a model is given. */
const MODEL_CHARACTERS_MAX = 64 << 10;

type Field = { type: 'string' | 'integer'; description: string; minLength?: number; minimum?: number };
type Fields = Record<string, Field>;
type ToolOptions = { abortSignal?: AbortSignal };

/** A Standard Schema that says itself in JSON Schema. */
export interface InputSchema<T> {
    readonly '~standard': {
        readonly version: 1;
        readonly vendor: 'cellkeep';
        readonly types?: { readonly input: T; readonly output: T };
        readonly validate: (
            value: unknown,
        ) => { readonly value: T; readonly issues?: undefined } | { readonly issues: { message: string }[] };
        readonly jsonSchema: {
            readonly input: () => Record<string, unknown>;
            readonly output: () => Record<string, unknown>;
        };
    };
}

export interface SandboxTool<I, O> {
    description: string;
    inputSchema: InputSchema<I>;
    execute: (input: I, options: ToolOptions) => Promise<O>;
}

function wrongWith(name: string, field: Field, value: unknown): string | undefined {
    if (field.type === 'string' ? typeof value !== 'string' : !Number.isInteger(value)) {
        return `${name}: no ${field.type}`;
    }
    if (field.minLength !== undefined && (value as string).length < field.minLength) {
        return `${name}: empty`;
    }
    if (field.minimum !== undefined && (value as number) < field.minimum) {
        return `${name}: less than ${field.minimum}`;
    }
    return undefined;
}

function schemaOf<T>(required: Fields, optional: Fields = {}): InputSchema<T> {
    const fields: Fields = { ...required, ...optional };
    const needed = Object.keys(required);
    const issuesOf = (value: Record<string, unknown>): string[] => [
        ...needed.filter((name) => value[name] === undefined).map((name) => `${name}: missing`),
        ...Object.entries(value).flatMap(([name, given]) => {
            const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
            return field ? (given === undefined ? [] : (wrongWith(name, field, given) ?? [])) : `${name}: unknown`;
        }),
    ];
    const document = { type: 'object', properties: fields, required: needed, additionalProperties: false };
    return {
        '~standard': {
            version: 1,
            vendor: 'cellkeep',
            validate: (value) => {
                if (typeof value !== 'object' || value === null || Array.isArray(value)) {
                    return { issues: [{ message: 'no object' }] };
                }
                const issues = issuesOf(value as Record<string, unknown>).map((message) => ({ message }));
                return issues.length > 0 ? { issues } : { value: value as T };
            },
            jsonSchema: { input: () => document, output: () => document },
        },
    };
}

/** The beginning and the end of a long text. */
function shortened(text: string): string {
    if (text.length <= MODEL_CHARACTERS_MAX) {
        return text;
    }
    const half = MODEL_CHARACTERS_MAX / 2;
    const left = text.length - MODEL_CHARACTERS_MAX;
    return `${text.slice(0, half)}\n[… ${left} characters left out …]\n${text.slice(-half)}`;
}

const time: Field = { type: 'integer', minimum: 1, description: 'Milliseconds that it may take' };
const path: Field = { type: 'string', minLength: 1, description: 'Absolute, or relative to where commands begin' };
const line = (which: string): Field => ({ type: 'integer', minimum: 1, description: `The ${which} line, from 1` });

/** If the server refuses the content of a request, the model made a mistake. The sandbox is whole, and the model hears why. */
async function refusals<T>(body: () => Promise<T>): Promise<T> {
    try {
        return await body();
    } catch (error) {
        const cause = error instanceof SandboxBroken && error.reason === 'refused' ? error.cause : undefined;
        throw cause instanceof ProblemError && [400, 413, 422].includes(cause.status) ? cause : error;
    }
}

export type RunCodeInput = { code: string; timeout_ms?: number };
export type RunCodeOutput = { status: string; text: string; stderr: string; error: string | null };
export type RunCommandInput = { command: string; timeout_ms?: number };
export type RunCommandOutput = { exit_code: number; stdout: string; stderr: string };
export type ReadFileInput = { path: string; start_line?: number; end_line?: number };
export type ReadFileOutput = { found: boolean; text: string };
export type WriteFileInput = { path: string; content: string };

export type SandboxTools = {
    run_code: SandboxTool<RunCodeInput, RunCodeOutput>;
    run_command: SandboxTool<RunCommandInput, RunCommandOutput>;
    read_file: SandboxTool<ReadFileInput, ReadFileOutput>;
    write_file: SandboxTool<WriteFileInput, { bytes: number }>;
};

async function runCode(sandbox: CellkeepSandbox, input: RunCodeInput, options: ToolOptions): Promise<RunCodeOutput> {
    const { abortSignal } = options;
    const timeout = input.timeout_ms ?? sandbox.options.timeout_ms;
    const result = await requests(() =>
        sandbox.session.run(input.code, {
            on_disconnect: 'interrupt', // What is aborted does not go on.
            ...(timeout !== undefined && { timeout_ms: timeout }),
            ...(abortSignal && { signal: abortSignal }),
        }),
    );
    const { status, text, stderr, error } = checkResult(result);
    const said = error && `${error.name}: ${error.message}`;
    return { status, text: shortened(text), stderr: shortened(stderr), error: said && shortened(said) };
}

function runCodeTool(sandbox: CellkeepSandbox): SandboxTools['run_code'] {
    const { language } = sandbox.session.info;
    return {
        description: `Runs ${language} code in an interpreter that keeps its variables. ${sandbox.description}`,
        inputSchema: schemaOf({ code: { type: 'string', description: `${language} code` } }, { timeout_ms: time }),
        execute: (input, options) => refusals(() => runCode(sandbox, input, options)),
    };
}

function runCommandTool(sandbox: CellkeepSandbox): SandboxTools['run_command'] {
    const command: Field = { type: 'string', minLength: 1, description: 'A command line of bash' };
    return {
        description: `Runs a command to its end. ${sandbox.description}`,
        inputSchema: schemaOf({ command }, { timeout_ms: time }),
        execute: async (input, { abortSignal }) => {
            const ran = await refusals(() => sandbox.run({ ...input, ...(abortSignal && { abortSignal }) }));
            return { exit_code: ran.exitCode, stdout: shortened(ran.stdout), stderr: shortened(ran.stderr) };
        },
    };
}

/** The tools: `generateText({ tools: sandboxTools(sandbox), … })`. */
export function sandboxTools(sandbox: CellkeepSandbox): SandboxTools {
    const lines = { start_line: line('first'), end_line: line('last') };
    const content: Field = { type: 'string', description: 'All of its text' };
    return {
        run_code: runCodeTool(sandbox),
        run_command: runCommandTool(sandbox),
        read_file: {
            description: 'Reads a text file of the sandbox.',
            inputSchema: schemaOf({ path }, lines),
            execute: async (input, { abortSignal }) => {
                const wanted = {
                    path: input.path,
                    ...(input.start_line !== undefined && { startLine: input.start_line }),
                    ...(input.end_line !== undefined && { endLine: input.end_line }),
                    ...(abortSignal && { abortSignal }),
                };
                const text = await refusals(() => sandbox.readTextFile(wanted));
                return { found: text !== null, text: shortened(text ?? '') };
            },
        },
        write_file: {
            description: 'Writes a text file of the sandbox, and makes the folders above it.',
            inputSchema: schemaOf({ path, content }),
            execute: async (input, { abortSignal }) => {
                await refusals(() => sandbox.writeTextFile({ ...input, ...(abortSignal && { abortSignal }) }));
                return { bytes: new TextEncoder().encode(input.content).byteLength };
            },
        },
    };
}
