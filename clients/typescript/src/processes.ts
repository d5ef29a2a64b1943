// SPDX-License-Identifier: Apache-2.0
//
// Commands that run in a session beside its interpreters, with or without a terminal.

import { ConnectionFailed } from './errors.js';
import type { ProcessEvent } from './events.js';
import { follow } from './follow.js';
import type { Http } from './http.js';
import type { Process as ProcessInfo, ProcessInput, ProcessList, ProcessRequest } from './schema.js';

/** What a process may have besides its command: the wire's own members. */
export type ProcessOptions = Omit<ProcessRequest, 'argv' | 'command'>;

/** Characters that one call of `String.fromCharCode` gets. */
const CHARACTERS_AT_ONCE = 1 << 15;

function toBase64(bytes: Uint8Array): string {
    let text = '';
    for (let at = 0; at < bytes.length; at += CHARACTERS_AT_ONCE) {
        text += String.fromCharCode(...bytes.subarray(at, at + CHARACTERS_AT_ONCE));
    }
    return btoa(text);
}

/** What an event `stdout` or `stderr` holds. */
export function outputBytes(event: ProcessEvent): Uint8Array {
    if (event.base64 !== undefined) {
        return Uint8Array.from(atob(event.base64), (char) => char.charCodeAt(0));
    }
    return new TextEncoder().encode(event.text ?? '');
}

function joined(pieces: Uint8Array[]): Uint8Array {
    const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.byteLength, 0));
    let at = 0;
    for (const piece of pieces) {
        whole.set(piece, at);
        at += piece.byteLength;
    }
    return whole;
}

/** All that is kept of a process that has ended. */
export class Output {
    constructor(
        readonly info: ProcessInfo,
        readonly stdout: Uint8Array,
        readonly stderr: Uint8Array,
        /** Bytes at the beginning that the server no longer had. */
        readonly missed: number,
    ) {}

    /** What it wrote to stdout. */
    get text(): string {
        return new TextDecoder().decode(this.stdout);
    }
}

/** A command that was started, or found again by its id. */
export class Process {
    readonly #http: Http;
    readonly #path: string;

    constructor(
        http: Http,
        sessionPath: string,
        public info: ProcessInfo,
    ) {
        this.#http = http;
        this.#path = `${sessionPath}/processes/${encodeURIComponent(info.id)}`;
    }

    get id(): string {
        return this.info.id;
    }

    /** Asks the server how it is now. */
    async refresh(): Promise<ProcessInfo> {
        this.info = await this.#http.json({ method: 'GET', path: this.#path, repeatable: true });
        return this.info;
    }

    /**
     * Its output from byte `after` on, up to `exited`, also over broken connections. `outputBytes` reads an event;
     * `gap` says how many bytes are no longer there. Aborting the signal stops the reading, not the process.
     */
    events(options: { after?: number; signal?: AbortSignal } = {}): AsyncGenerator<ProcessEvent> {
        const { after = 0, signal } = options;
        return follow<ProcessEvent>(this.#http, { home: this.#path, after, ends: 'exited', signal });
    }

    async #post(name: string, json: unknown, repeatable: boolean): Promise<void> {
        await this.#http.nothing({ method: 'POST', path: `${this.#path}/${name}`, json, repeatable });
    }

    /** Gives it more to read. A `ProblemError` with status 429: it has not read enough of what was sent before. */
    async write(data: string | Uint8Array, options: { close?: boolean } = {}): Promise<void> {
        const content = typeof data === 'string' ? { text: data } : { base64: toBase64(data) };
        const input: ProcessInput = options.close ? { ...content, close: true } : content;
        await this.#post('stdin', input, false); // A second one would be read twice.
    }

    /** It reads an end of file behind what was sent. */
    async closeStdin(): Promise<void> {
        await this.#post('stdin', { close: true }, false);
    }

    /** `SIGINT`, `TERM`, …, to it and its process group. */
    async signal(name: string): Promise<void> {
        await this.#post('signal', { name }, false);
    }

    /** Changes the size of its terminal. */
    async resize(rows: number, cols: number): Promise<void> {
        await this.#post('resize', { rows, cols }, true);
    }

    /** Kills it and its process group. The server forgets it when it has ended. */
    async kill(): Promise<void> {
        await this.#http.nothing({ method: 'DELETE', path: this.#path, repeatable: false });
    }

    /** Its output, when it has ended. */
    async wait(options: { signal?: AbortSignal } = {}): Promise<Output> {
        const pieces: { stdout: Uint8Array[]; stderr: Uint8Array[] } = { stdout: [], stderr: [] };
        let missed = 0;
        for await (const event of this.events(options)) {
            if (event.type === 'stdout' || event.type === 'stderr') {
                pieces[event.type].push(outputBytes(event));
            } else if (event.type === 'gap') {
                missed += event.bytes ?? 0;
            } else if (event.type === 'exited' && event.process) {
                this.info = event.process;
                return new Output(event.process, joined(pieces.stdout), joined(pieces.stderr), missed);
            }
        }
        throw new ConnectionFailed('the stream ended before the process did');
    }
}

export async function startProcess(
    http: Http,
    sessionPath: string,
    command: string | readonly string[],
    options: ProcessOptions,
): Promise<Process> {
    const program = typeof command === 'string' ? { command } : { argv: [...command] };
    const json = { ...options, ...program };
    // Without a second try: the first may have started one.
    const call = { method: 'POST', path: `${sessionPath}/processes`, json, repeatable: false };
    return new Process(http, sessionPath, await http.json<ProcessInfo>(call));
}

export async function listProcesses(http: Http, sessionPath: string): Promise<Process[]> {
    const call = { method: 'GET', path: `${sessionPath}/processes`, repeatable: true };
    const { processes } = await http.json<ProcessList>(call);
    return processes.map((info) => new Process(http, sessionPath, info));
}

export async function findProcess(http: Http, sessionPath: string, id: string): Promise<Process> {
    const path = `${sessionPath}/processes/${encodeURIComponent(id)}`;
    return new Process(http, sessionPath, await http.json<ProcessInfo>({ method: 'GET', path, repeatable: true }));
}
