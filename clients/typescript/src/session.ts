// SPDX-License-Identifier: Apache-2.0
//
// Sessions, their executions and their files: the thin surface over the wire's own types (schema.ts).

import { Approvals } from './approvals.js';
import { Batch } from './batches.js';
import { Branches } from './branches.js';
import { Checkpoints } from './checkpoints.js';
import { ConnectionFailed, ProblemError } from './errors.js';
import { type Event } from './events.js';
import { follow } from './follow.js';
import { Http, type Call, type ServerOptions } from './http.js';
import { Ports } from './ports.js';
import { findProcess, listProcesses, startProcess, type Process, type ProcessOptions } from './processes.js';
import { Result } from './result.js';
import type {
    Artifact,
    BatchRequest,
    Execution as WireExecution,
    ExecutionEntry,
    ExecutionPage,
    ExecutionRequest,
    FileEntry,
    FileList,
    OneShotRequest,
    PackagesInstalled,
    PackagesRequest,
    Session as SessionInfo,
    SessionFromRequest,
    SessionPage,
    SessionRequest,
    SessionUpdate,
    UnfinishedExecution,
} from './schema.js';
import { takeCall, toolsOnTheWire, type Tools } from './tools.js';
import { download, upload, type Progress, type Upload } from './transfer.js';

/** How long the server lets an installation take if its options do not say. */
const INSTALL_MS = 300_000;

/** How long after its deadline an answer may come: a restart of the interpreter and the network take time. */
const ANSWER_GRACE_MS = 60_000;

/** The options of a run besides its code, and a signal that stops the wait for it. */
export type RunOptions = Omit<ExecutionRequest, 'code' | 'tools'> & {
    signal?: AbortSignal;
    /** What the code may call while it runs: `run` answers with these. Python: `from cellkeep import tools`. */
    tools?: Tools;
    /** Sees output as it comes. */
    onStdout?: (text: string) => unknown;
    onStderr?: (text: string) => unknown;
    onEvent?: (event: Event) => unknown;
};

function split(options: RunOptions): [Omit<ExecutionRequest, 'code'>, AbortSignal | undefined] {
    const { signal, onStdout: _o, onStderr: _e, onEvent: _v, tools, ...fields } = options;
    const lent = tools && { tools: toolsOnTheWire(tools) };
    // With a key, a second request joins the same execution.
    return [{ idempotency_key: globalThis.crypto?.randomUUID?.() ?? randomKey(), ...fields, ...lent }, signal];
}

function randomKey(): string {
    return Array.from({ length: 4 }, () => Math.random().toString(36).slice(2)).join('');
}

/** An execution that was submitted and runs on its own. */
export class Execution {
    readonly #http: Http;
    readonly #path: string;

    constructor(http: Http, path: string, public info: UnfinishedExecution | WireExecution) {
        this.#http = http;
        this.#path = `${path}/${info.id}`;
    }

    get id(): string {
        return this.info.id;
    }

    async refresh(): Promise<UnfinishedExecution | WireExecution> {
        this.info = await this.#http.json({ method: 'GET', path: this.#path, repeatable: true });
        return this.info;
    }

    /** Its events, from the first (or the one after number `after`) to the last. */
    events(options: { after?: number; signal?: AbortSignal } = {}): AsyncGenerator<Event> {
        return follow(this.#http, { ...options, home: this.#path, ends: 'finished' });
    }

    /** The whole answer; waits for it. */
    async result(options: { signal?: AbortSignal } = {}): Promise<Result> {
        if ((await this.refresh()).phase !== 'finished') {
            for await (const _ of this.events(options)) {
                // Only the end is wanted.
            }
            await this.refresh();
        }
        return new Result(this.info as WireExecution);
    }

    /** Stops it if it runs; takes it out of the queue if it waits. */
    async interrupt(): Promise<void> {
        await this.#http.nothing({ method: 'POST', path: `${this.#path}/interrupt`, repeatable: false });
    }
}

/** A persistent interpreter in a sandbox of its own. */
export class Session {
    readonly #http: Http;
    readonly #path: string;
    readonly branches: Branches<Session>;
    readonly checkpoints: Checkpoints;
    readonly ports: Ports;

    constructor(http: Http, public info: SessionInfo) {
        this.#http = http;
        this.#path = `/v1/sessions/${info.id}`;
        this.branches = new Branches(http, info.id, (made) => new Session(http, made));
        this.checkpoints = new Checkpoints(http, this.#path);
        this.ports = new Ports(http, this.#path);
    }

    /** A new session. The options are the wire's own, and where the server is. */
    static async create(options: SessionRequest & ServerOptions = {}): Promise<Session> {
        const { url, token, retries, fetch, ...request } = options;
        const server = { url, token, retries, fetch };
        const given = Object.entries(server).filter(([, value]) => value !== undefined);
        return new Client(Object.fromEntries(given) as ServerOptions).create(request);
    }

    get id(): string {
        return this.info.id;
    }

    /** Ends the session and everything in it. It is no error if the session has already ended. */
    async close(): Promise<void> {
        try {
            await this.#http.nothing({ method: 'DELETE', path: this.#path, repeatable: true });
        } catch (error) {
            if (!(error instanceof ProblemError && [404, 410].includes(error.status))) {
                throw error;
            }
        }
    }

    #asked(code: string, options: RunOptions): Call {
        const [fields, signal] = split(options);
        const longest = fields.timeout_ms ?? this.info.limits.wall_ms ?? 30_000;
        return {
            method: 'POST',
            path: `${this.#path}/executions`,
            json: { code, ...fields },
            repeatable: true,
            patience: longest + ANSWER_GRACE_MS,
            signal,
        };
    }

    /** Runs code and gives its one answer, also when the code fails. */
    async run(code: string, options: RunOptions = {}): Promise<Result> {
        if (!options.onStdout && !options.onStderr && !options.onEvent && !options.tools) {
            return new Result(await this.#http.json<WireExecution>(this.#asked(code, options)));
        }
        let execution = '';
        for await (const event of this.stream(code, options)) {
            options.onEvent?.(event);
            if (event.type === 'stdout') {
                options.onStdout?.(event.text ?? '');
            } else if (event.type === 'stderr') {
                options.onStderr?.(event.text ?? '');
            } else if (event.type === 'queued' || event.type === 'started') {
                execution = `${this.#path}/executions/${event.id ?? ''}`;
            } else if (event.type === 'tool_call') {
                await takeCall(this.#http, execution, event, options.tools ?? {});
            } else if (event.type === 'finished' && event.execution) {
                return new Result(event.execution);
            }
        }
        throw new ConnectionFailed('the stream ended before the execution did');
    }

    /** Runs code and gives its events as they come; resumes after a broken connection. */
    stream(code: string, options: RunOptions = {}): AsyncGenerator<Event> {
        const call = this.#asked(code, options);
        return follow(this.#http, { start: call, ends: 'finished', signal: call.signal });
    }

    /** Starts code and returns at once. */
    async submit(code: string, options: RunOptions = {}): Promise<Execution> {
        const call = { ...this.#asked(code, options), headers: { Prefer: 'respond-async' } };
        const info = await this.#http.json<UnfinishedExecution>(call);
        return new Execution(this.#http, `${this.#path}/executions`, info);
    }

    /** An execution of this session, by its id. */
    async execution(id: string): Promise<Execution> {
        const path = `${this.#path}/executions`;
        const call = { method: 'GET', path: `${path}/${encodeURIComponent(id)}`, repeatable: true };
        return new Execution(this.#http, path, await this.#http.json<WireExecution>(call));
    }

    /** Every execution the server remembers of this session, oldest first. */
    async *executions(): AsyncGenerator<ExecutionEntry> {
        for (let after: string | undefined; ; ) {
            const call = { method: 'GET', path: `${this.#path}/executions`, query: { after }, repeatable: true };
            const page: ExecutionPage = await this.#http.json(call);
            yield* page.executions;
            if (page.next === null) {
                return;
            }
            after = page.next;
        }
    }

    /** Stops the code that runs, in one language or in all; what is idle is not disturbed. */
    async interrupt(language?: string): Promise<void> {
        const json = language === undefined ? undefined : { language };
        await this.#http.nothing({ method: 'POST', path: `${this.#path}/interrupt`, json, repeatable: false });
    }

    /** Starts a fresh interpreter with the same files: of the session's language, or of another. */
    async restart(language?: string): Promise<SessionInfo> {
        const json = language === undefined ? undefined : { language };
        const call = { method: 'POST', path: `${this.#path}/restart`, json, repeatable: false };
        return (this.info = await this.#http.json<SessionInfo>(call));
    }

    /** Installs Python packages from the operator's index: `['rich', 'humanize==4.9']`. */
    async install(
        packages: readonly string[],
        options: Omit<PackagesRequest, 'python'> = {},
    ): Promise<PackagesInstalled> {
        const call = {
            method: 'POST',
            path: `${this.#path}/packages`,
            json: { python: packages, ...options },
            // Without a second try: the first may still run.
            repeatable: false,
            patience: (options.timeout_ms ?? INSTALL_MS) + ANSWER_GRACE_MS,
        };
        return this.#http.json<PackagesInstalled>(call);
    }

    async refresh(): Promise<SessionInfo> {
        const call = { method: 'GET', path: this.#path, repeatable: true };
        return (this.info = await this.#http.json<SessionInfo>(call));
    }

    /** Lowers limits, changes the network allowlist, merges metadata, or counts as activity. */
    async update(change: SessionUpdate): Promise<SessionInfo> {
        const call = { method: 'PATCH', path: this.#path, json: change, repeatable: true };
        return (this.info = await this.#http.json<SessionInfo>(call));
    }

    // --- processes

    /**
     * Starts a command beside the interpreters: a line for the shell, or a list of arguments. The options are the
     * wire's own. It goes on between runs and over restarts of the interpreter, until it ends or the session does.
     */
    startProcess(command: string | readonly string[], options: ProcessOptions = {}): Promise<Process> {
        return startProcess(this.#http, this.#path, command, options);
    }

    /** Those that run, and the last that have ended. */
    processes(): Promise<Process[]> {
        return listProcesses(this.#http, this.#path);
    }

    /** One of them, by its id. */
    process(id: string): Promise<Process> {
        return findProcess(this.#http, this.#path, id);
    }

    // --- files

    #file(path: string): string {
        return `${this.#path}/files/${path.split('/').map(encodeURIComponent).join('/')}`;
    }

    /** The entries of a directory of the workspace. */
    async files(path = ''): Promise<FileEntry[]> {
        const query = { path: path || undefined };
        const call = { method: 'GET', path: `${this.#path}/files`, query, repeatable: true };
        return (await this.#http.json<FileList>(call)).entries;
    }

    /** Puts a file into the workspace. */
    upload(content: Upload, path: string, options: { onProgress?: Progress } = {}): Promise<FileEntry> {
        return upload(this.#http, this.#file(path), content, options.onProgress);
    }

    /** A file of the workspace. After a broken connection the download continues where it was. */
    download(path: string | Artifact, options: { onProgress?: Progress } = {}): Promise<Uint8Array> {
        const name = typeof path === 'string' ? path : path.path;
        return download(this.#http, this.#file(name), options.onProgress);
    }

    async readText(path: string | Artifact): Promise<string> {
        return new TextDecoder().decode(await this.download(path));
    }

    /** The whole workspace as a tar archive, compressed with zstd. */
    archive(options: { onProgress?: Progress } = {}): Promise<Uint8Array> {
        return download(this.#http, `${this.#path}/files.tar.zst`, options.onProgress);
    }

    async remove(path: string, options: { recursive?: boolean } = {}): Promise<void> {
        const query = { recursive: options.recursive ? 'true' : undefined };
        await this.#http.nothing({ method: 'DELETE', path: this.#file(path), query, repeatable: true });
    }
}

/** A server: its sessions, and runs that need none. */
export class Client {
    readonly #http: Http;
    readonly approvals: Approvals;

    constructor(options: ServerOptions = {}) {
        this.#http = new Http(options);
        this.approvals = new Approvals(this.#http);
    }

    async create(request: SessionRequest | SessionFromRequest = {}): Promise<Session> {
        const call = { method: 'POST', path: '/v1/sessions', json: request, repeatable: false };
        return new Session(this.#http, await this.#http.json<SessionInfo>(call));
    }

    /** An existing session, by its id or its kernel's. */
    async session(id: string): Promise<Session> {
        const path = `/v1/sessions/${encodeURIComponent(id)}`;
        const info = await this.#http.json<SessionInfo>({ method: 'GET', path, repeatable: true });
        return new Session(this.#http, info);
    }

    /** The sessions that this token may see, oldest first; with `metadata`, those that have these texts in theirs. */
    async *sessions(options: { metadata?: Record<string, string> } = {}): AsyncGenerator<SessionInfo> {
        const wanted = Object.entries(options.metadata ?? {}).map(([name, value]) => [`metadata.${name}`, value]);
        for (let after: string | undefined; ; ) {
            const query = { ...Object.fromEntries(wanted), after };
            const call = { method: 'GET', path: '/v1/sessions', query, repeatable: true };
            const page: SessionPage = await this.#http.json(call);
            yield* page.sessions;
            if (page.next === null) {
                return;
            }
            after = page.next;
        }
    }

    /** Runs each item in a fresh session, some at a time; with `from`, in a branch of a session. */
    batch(items: BatchRequest['items'], options: Omit<BatchRequest, 'items'> = {}): Promise<Batch> {
        return Batch.begin(this.#http, { ...options, items });
    }

    /** Runs code in a fresh sandbox that is gone afterwards. */
    async run(code: string, options: Omit<OneShotRequest, 'code'> & { signal?: AbortSignal } = {}): Promise<Result> {
        const [fields, signal] = split(options);
        const longest = fields.timeout_ms ?? options.limits?.wall_ms ?? 30_000;
        const call: Call = {
            method: 'POST',
            path: '/v1/executions',
            json: { code, ...fields },
            repeatable: true,
            patience: longest + ANSWER_GRACE_MS,
            signal,
        };
        return new Result(await this.#http.json<WireExecution>(call));
    }
}
