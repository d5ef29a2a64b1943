// SPDX-License-Identifier: Apache-2.0
//
// A command of a sandbox from its start to its end, within bounds of time and output.

import { ProblemError } from '../errors.js';
import { outputBytes, type Process } from '../processes.js';
import type { Session } from '../session.js';
import { exitCodeOf, OutOfTime, requests, SandboxBroken, TooMuchOutput } from './reasons.js';

/** Bytes of each stream of a command; one that writes more is killed. */
export const OUTPUT_BYTES_MAX = 10 << 20;
/** What the server takes in one request as arguments and as input; more goes through a file. */
const COMMAND_BYTES_MAX = 32_000;
const INPUT_BYTES_MAX = 512 << 10;
/** A timer of more fires at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const HOME = '/workspace';

export interface Order {
    /** A line for bash, or a program and its arguments. */
    command: string | string[];
    cwd: string;
    env?: Record<string, string> | undefined;
}

export interface Bounds {
    signal?: AbortSignal | undefined;
    milliseconds?: number | undefined;
    outputBytesMax?: number;
}

export interface Ran {
    exitCode: number;
    stdout: Uint8Array;
    stderr: Uint8Array;
}

function fileName(): string {
    const random = globalThis.crypto.getRandomValues(new Uint8Array(8));
    return `.cellkeep-${[...random].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/** A file in the workspace for what starts with it, which removes it. Gives its absolute path. */
async function withFile<T>(
    session: Session,
    content: string | Uint8Array,
    start: (path: string) => Promise<T>,
): Promise<T> {
    const name = fileName();
    await session.upload(content, name);
    try {
        return await start(`${HOME}/${name}`);
    } catch (error) {
        await session.remove(name).catch(() => undefined); // The first error says more.
        throw error;
    }
}

/** Reads a long line from a file that is gone before the line runs. */
const FROM_FILE = 'exec 3<"$1" && rm -f -- "$1" && exec /bin/bash /dev/fd/3';

/** Starts a command that waits for its reader. */
export async function begin(session: Session, order: Order, stdin: 'open' | 'closed'): Promise<Process> {
    const { command, cwd, env } = order;
    const options = { cwd, stdin, when_full: 'wait' as const, ...(env && { env }) };
    if (typeof command !== 'string') {
        return session.startProcess(command, options);
    }
    if (command.includes('\0')) {
        throw new TypeError('a command cannot have a NUL');
    }
    if (new TextEncoder().encode(command).byteLength <= COMMAND_BYTES_MAX) {
        return session.startProcess(['/bin/bash', '-c', command], options);
    }
    return withFile(session, command, (path) =>
        session.startProcess(['/bin/bash', '-c', FROM_FILE, 'bash', path], options),
    );
}

/** Kills what may have ended meanwhile. */
export async function end(process: Process): Promise<void> {
    try {
        await process.signal('SIGKILL');
    } catch (error) {
        if (!(error instanceof ProblemError && [404, 409, 410].includes(error.status))) {
            throw error;
        }
    }
}

/** What ends the wait for a command: its caller's signal, or its time. */
export class Stop {
    readonly #controller = new AbortController();
    readonly #outer: AbortSignal | undefined;
    readonly #timer: ReturnType<typeof setTimeout> | undefined;
    readonly #leave = (): void => this.#controller.abort(this.#outer?.reason);

    constructor({ signal, milliseconds }: Bounds) {
        if (milliseconds !== undefined && !(milliseconds > 0)) {
            throw new RangeError(`no time limit: ${milliseconds} ms`);
        }
        this.#outer = signal;
        signal?.addEventListener('abort', this.#leave, { once: true });
        if (signal?.aborted) {
            this.#leave();
        }
        if (milliseconds !== undefined) {
            const late = (): void => this.#controller.abort(new OutOfTime(milliseconds));
            this.#timer = setTimeout(late, Math.min(milliseconds, TIMER_MS_MAX));
        }
    }

    get signal(): AbortSignal {
        return this.#controller.signal;
    }

    done(): void {
        clearTimeout(this.#timer);
        this.#outer?.removeEventListener('abort', this.#leave);
    }
}

function joined(pieces: Uint8Array[], size: number): Uint8Array {
    const whole = new Uint8Array(size);
    let at = 0;
    for (const piece of pieces) {
        whole.set(piece, at);
        at += piece.byteLength;
    }
    return whole;
}

async function gather(process: Process, signal: AbortSignal, bytesMax: number): Promise<Ran> {
    const pieces: { stdout: Uint8Array[]; stderr: Uint8Array[] } = { stdout: [], stderr: [] };
    const sizes = { stdout: 0, stderr: 0 };
    for await (const event of process.events({ signal })) {
        if (event.type === 'stdout' || event.type === 'stderr') {
            const piece = outputBytes(event);
            sizes[event.type] += piece.byteLength;
            if (sizes[event.type] > bytesMax) {
                throw new TooMuchOutput(`the command's ${event.type}`, bytesMax);
            }
            pieces[event.type].push(piece);
        } else if (event.type === 'gap') {
            throw new SandboxBroken('unreachable', `${event.bytes} bytes of the output were lost on the way`);
        } else if (event.type === 'exited' && event.process) {
            const exitCode = exitCodeOf(event.process, false);
            const stdout = joined(pieces.stdout, sizes.stdout);
            const failed = event.process.end?.error;
            const stderr = failed
                ? new TextEncoder().encode(`${failed}\n`)
                : joined(pieces.stderr, sizes.stderr);
            return { exitCode, stdout, stderr };
        }
    }
    throw new SandboxBroken('dead', "the command's output ended before the command did");
}

/** Runs a command to its end. What its caller gives up, and what writes too much, is killed. */
export async function run(session: Session, order: Order, bounds: Bounds, input?: Uint8Array): Promise<Ran> {
    const stop = new Stop(bounds);
    try {
        stop.signal.throwIfAborted();
        return await requests(async () => {
            const process = await begin(session, order, input ? 'open' : 'closed');
            try {
                if (input) {
                    await feed(process, input);
                }
                return await gather(process, stop.signal, bounds.outputBytesMax ?? OUTPUT_BYTES_MAX);
            } catch (error) {
                if (stop.signal.aborted || error instanceof TooMuchOutput) {
                    await end(process);
                }
                throw error;
            }
        });
    } finally {
        stop.done();
    }
}

async function feed(process: Process, input: Uint8Array): Promise<void> {
    try {
        await process.write(input, { close: true });
    } catch (error) {
        // A command that ends without having read is none that failed.
        if (!(error instanceof ProblemError && error.status === 409)) {
            throw error;
        }
    }
}

/** Runs a program with input of any length: a long one is in a file, whose path is the last argument. */
export async function runWithInput(
    session: Session,
    argv: string[],
    input: Uint8Array,
    bounds: Bounds,
): Promise<Ran> {
    const order = (last: string): Order => ({ command: [...argv, last], cwd: HOME });
    if (input.byteLength <= INPUT_BYTES_MAX) {
        return run(session, order(''), bounds, input);
    }
    return requests(() => withFile(session, input, (path) => run(session, order(path), bounds)));
}

