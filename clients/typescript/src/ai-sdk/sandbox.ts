// SPDX-License-Identifier: Apache-2.0
//
// A session as the AI SDK's `Experimental_SandboxSession`.

import { ConnectionFailed, ProblemError } from '../errors.js';
import { pause, type ServerOptions } from '../http.js';
import type { SessionRequest } from '../schema.js';
import { Client, Session } from '../session.js';
import { begin, HOME, OUTPUT_BYTES_MAX, run, Stop, type Order } from './commands.js';
import { FILE_BYTES_MAX, FileError, Files, type DirectoryEntry, type FileStat } from './files.js';
import { reasonOf, requests, SandboxBroken } from './reasons.js';
import { Spawned, WritableSpawned } from './spawned.js';

/** How long the making of a sandbox waits for a server that is full. */
const PATIENCE_MS = 60_000;
/** The key of the mark in a session's metadata. */
const MARK = 'cellkeep_integrations';
/** How far the pauses between attempts grow: 0.2 s · 2⁵. */
const PAUSES_GROW = 5;

export interface SandboxOptions {
    /** Where commands and relative paths begin: a directory of the sandbox. Default: /workspace. */
    cwd?: string;
    /** How long `run` may take; without it as long as its caller waits. */
    timeout_ms?: number;
    /** What `description` says besides. */
    description?: string;
}

export interface CommandOptions {
    command: string;
    workingDirectory?: string;
    env?: Record<string, string>;
    abortSignal?: AbortSignal;
}

export interface PathOptions {
    path: string;
    abortSignal?: AbortSignal;
}

type Spawn = {
    (options: CommandOptions & { stdin: true }): Promise<WritableSpawned>;
    (options: CommandOptions & { stdin?: false }): Promise<Spawned>;
    (options: CommandOptions & { stdin?: boolean }): Promise<Spawned | WritableSpawned>;
};

/**
 * `experimental_sandbox: await CellkeepSandbox.create()`. A program that fails is a value. What the sandbox fails at is
 * thrown as `SandboxBroken`. What is aborted is killed inside, and throws the signal's reason.
 */
export class CellkeepSandbox {
    readonly description: string;
    readonly #files: Files;
    readonly #folder: string;

    constructor(
        readonly session: Session,
        readonly options: SandboxOptions = {},
    ) {
        const { cwd = HOME } = options;
        if (cwd === '' || cwd.includes('\0')) {
            throw new FileError('EINVAL', cwd);
        }
        this.#folder = cwd.startsWith('/') ? cwd : `${HOME}/${cwd}`;
        this.#files = new Files(session, this.#folder);
        const { memory_mb } = session.info.limits;
        this.description = [
            `A Linux sandbox. Commands are run by bash, begin in ${this.#folder} and have ${memory_mb} MiB of memory.`,
            ...(options.description ? [options.description] : []),
        ].join(' ');
    }

    /** A new session. A server that is full is asked again for `patience_ms`. */
    static async create(
        options: SessionRequest & ServerOptions & SandboxOptions & { patience_ms?: number } = {},
    ): Promise<CellkeepSandbox> {
        const { url, token, retries, fetch, cwd, timeout_ms, description, patience_ms, ...request } = options;
        const given = (all: object): object =>
            Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
        const client = await requests(async () => new Client(given({ url, token, retries, fetch })));
        const session = await make(client, request, patience_ms ?? PATIENCE_MS);
        return new CellkeepSandbox(session, given({ cwd, timeout_ms, description }));
    }

    get id(): string {
        return this.session.id;
    }

    /** Ends the session. It is no error if it has ended. */
    close(): Promise<void> {
        return requests(() => this.session.close());
    }

    #order(options: CommandOptions): Order {
        const { command, workingDirectory, env } = options;
        const inside = workingDirectory && !workingDirectory.startsWith('/');
        const cwd = inside ? `${this.#folder}/${workingDirectory}` : workingDirectory || this.#folder;
        return { command, cwd, env };
    }

    /** A command to its end, within the sandbox's time and 10 MiB of each stream. */
    readonly run = async (
        options: CommandOptions & { timeout_ms?: number },
    ): Promise<{ exitCode: number; stdout: string; stderr: string }> => {
        const milliseconds = options.timeout_ms ?? this.options.timeout_ms;
        const bounds = { signal: options.abortSignal, milliseconds, outputBytesMax: OUTPUT_BYTES_MAX };
        const ran = await run(this.session, this.#order(options), bounds);
        const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
        return { exitCode: ran.exitCode, stdout: text(ran.stdout), stderr: text(ran.stderr) };
    };

    /** A command that goes on. Its streams are pipes: what is not read makes it wait. */
    readonly spawn = (async (options: CommandOptions & { stdin?: boolean }) => {
        options.abortSignal?.throwIfAborted();
        const stdin = options.stdin ? 'open' : 'closed';
        const process = await requests(() => begin(this.session, this.#order(options), stdin));
        const stop = new Stop({ signal: options.abortSignal });
        return options.stdin ? new WritableSpawned(process, stop) : new Spawned(process, stop);
    }) as Spawn;

    readonly readBinaryFile = ({ path, abortSignal }: PathOptions): Promise<Uint8Array | null> =>
        this.#files.read(path, abortSignal);

    readonly readFile = async (options: PathOptions): Promise<ReadableStream<Uint8Array> | null> => {
        const bytes = await this.readBinaryFile(options);
        return bytes && new Blob([bytes as BlobPart]).stream();
    };

    readonly readTextFile = async (
        options: PathOptions & { encoding?: string; startLine?: number; endLine?: number },
    ): Promise<string | null> => {
        const { encoding, startLine = 1, endLine } = options;
        const decoder = new TextDecoder(encoding ?? 'utf-8');
        if (!isLine(startLine) || (endLine !== undefined && !isLine(endLine))) {
            throw new RangeError('lines are counted from 1');
        }
        const bytes = await this.readBinaryFile(options);
        const text = bytes && decoder.decode(bytes);
        return text && text.split('\n').slice(startLine - 1, endLine).join('\n');
    };

    readonly writeBinaryFile = (options: PathOptions & { content: Uint8Array }): Promise<void> =>
        this.#files.write(options.path, options.content, options.abortSignal);

    readonly writeFile = async (options: PathOptions & { content: ReadableStream<Uint8Array> }): Promise<void> =>
        this.writeBinaryFile({ ...options, content: await bytesOf(options.content, options.path) });

    readonly writeTextFile = async (
        options: PathOptions & { content: string; encoding?: string },
    ): Promise<void> => {
        if (!/^utf-?8$/i.test(options.encoding ?? 'utf-8')) {
            throw new RangeError(`text is written as UTF-8, and not as ${options.encoding}`);
        }
        await this.writeBinaryFile({ ...options, content: new TextEncoder().encode(options.content) });
    };

    readonly stat = ({ path, abortSignal }: PathOptions): Promise<FileStat | null> =>
        this.#files.stat(path, abortSignal);

    readonly listDirectory = ({ path, abortSignal }: PathOptions): Promise<DirectoryEntry[] | null> =>
        this.#files.list(path, abortSignal);

    readonly deleteFile = ({ path, abortSignal }: PathOptions): Promise<boolean> =>
        this.#files.delete(path, abortSignal);
}

function isLine(number: number): boolean {
    return Number.isInteger(number) && number >= 1;
}

async function bytesOf(stream: ReadableStream<Uint8Array>, path: string): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    let size = 0;
    const reader = stream.getReader();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        size += piece.value.byteLength;
        if (size > FILE_BYTES_MAX) {
            await reader.cancel();
            throw new FileError('EFBIG', path);
        }
        pieces.push(piece.value);
    }
    return new Uint8Array(await new Blob(pieces as BlobPart[]).arrayBuffer());
}

/** A session, when the server has room; one whose creation was cut off is found by its mark. */
async function make(client: Client, request: SessionRequest, patience: number): Promise<Session> {
    const mark = globalThis.crypto.randomUUID();
    // The generated type knows no member of it.
    const metadata = { ...request.metadata, [MARK]: mark } as unknown as SessionRequest['metadata'];
    const deadline = Date.now() + patience;
    for (let attempt = 0; ; ++attempt) {
        try {
            return await client.create({ ...request, ...(metadata && { metadata }) });
        } catch (error) {
            if (error instanceof ConnectionFailed) {
                return requests(() => find(client, mark, error));
            }
            if (!isFull(error) || Date.now() >= deadline) {
                return requests(() => Promise.reject(error));
            }
            await pause(Math.min(attempt, PAUSES_GROW), error.retryAfter);
        }
    }
}

function isFull(error: unknown): error is ProblemError {
    return error instanceof ProblemError && reasonOf(error) === 'capacity';
}

async function find(client: Client, mark: string, error: ConnectionFailed): Promise<Session> {
    for await (const info of client.sessions({ metadata: { [MARK]: mark } })) {
        return client.session(info.id);
    }
    throw new SandboxBroken('unreachable', `the creation of a session was cut off: ${error.message}`, { cause: error });
}
