// SPDX-License-Identifier: Apache-2.0
//
// Requests to one server over fetch: address, token, attempts. A request is repeated only if that
// is safe.

import { ConnectionFailed, ProblemError, problemOf } from './errors.js';

export interface ServerOptions {
    /** The server's address; otherwise the environment's CELLKEEP_URL. */
    url?: string;
    /** Its token; otherwise the address's `?token=`, or the environment's CELLKEEP_TOKEN. */
    token?: string;
    /** How often a request is sent again. Default: 4. */
    retries?: number;
    /** Instead of the global one. */
    fetch?: typeof globalThis.fetch;
}

export interface Call {
    method: string;
    path: string;
    query?: Record<string, string | undefined>;
    headers?: Record<string, string>;
    json?: unknown;
    /** Makes the body, anew for each attempt. */
    body?: () => BodyInit;
    /** The request is idempotent: a second one changes nothing. */
    repeatable: boolean;
    /** Milliseconds until the head of the answer must have come. */
    patience?: number;
    signal?: AbortSignal | undefined;
}

const PATIENCE_MS = 60_000;
const DELAY_MAX_MS = 10_000;

function fromEnvironment(name: string): string | undefined {
    const holder = globalThis as { process?: { env?: Record<string, string | undefined> } };
    return holder.process?.env?.[name];
}

/** Waits: what the server asked for, otherwise 0.2 s, 0.4 s, 0.8 s … */
export function pause(attempt: number, askedSeconds: number | undefined): Promise<void> {
    const asked = askedSeconds === undefined ? 200 * 2 ** attempt : askedSeconds * 1000;
    return new Promise((done) => setTimeout(done, Math.min(asked, DELAY_MAX_MS)));
}

/** Whether the connection was never made, so that nothing was sent. */
function neverSent(error: unknown): boolean {
    const cause = (error as { cause?: { code?: string } }).cause;
    return ['ECONNREFUSED', 'ENOTFOUND', 'UND_ERR_CONNECT_TIMEOUT'].includes(cause?.code ?? '');
}

export class Http {
    readonly url: string;
    readonly retries: number;
    readonly #token: string;
    readonly #fetch: typeof globalThis.fetch;

    constructor(options: ServerOptions) {
        const address = options.url ?? fromEnvironment('CELLKEEP_URL');
        if (!address) {
            throw new ConnectionFailed('no server is known: give url and token, or set CELLKEEP_URL');
        }
        const url = new URL(address);
        this.#token =
            options.token ?? url.searchParams.get('token') ?? fromEnvironment('CELLKEEP_TOKEN') ?? '';
        this.url = (url.origin + url.pathname).replace(/\/+$/, '');
        this.retries = options.retries ?? 4;
        this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    }

    /** One attempt. Throws the problem of a refusal. */
    async once(call: Call): Promise<Response> {
        const query = new URLSearchParams();
        for (const [name, value] of Object.entries(call.query ?? {})) {
            if (value !== undefined) {
                query.set(name, value);
            }
        }
        const headers: Record<string, string> = { ...call.headers };
        if (this.#token) {
            headers['Authorization'] = `Bearer ${this.#token}`;
        }
        const init: RequestInit & { duplex?: 'half' } = { method: call.method, headers };
        if (call.json !== undefined) {
            headers['Content-Type'] ??= 'application/json';
            init.body = JSON.stringify(call.json);
        } else if (call.body) {
            init.body = call.body();
            init.duplex = 'half';
        }
        const patience = new AbortController();
        const timer = setTimeout(
            () => patience.abort(new ConnectionFailed('the server does not answer')),
            call.patience ?? PATIENCE_MS,
        );
        const leave = (): void => patience.abort(call.signal?.reason);
        call.signal?.addEventListener('abort', leave);
        if (call.signal?.aborted) {
            leave();
        }
        init.signal = patience.signal;
        try {
            const suffix = query.toString();
            const answer = await this.#fetch(this.url + call.path + (suffix && `?${suffix}`), init);
            if (answer.status >= 400) {
                throw await problemOf(answer);
            }
            return answer;
        } finally {
            clearTimeout(timer);
        }
    }

    /** Sends the request, again where that is allowed and needed. `read` takes the answer; it is part of the attempt. */
    async send<T>(call: Call, read: (answer: Response) => Promise<T>): Promise<T> {
        for (let attempt = 0; ; ++attempt) {
            try {
                return await read(await this.once(call));
            } catch (error) {
                if (attempt >= this.retries || call.signal?.aborted || !mayRepeat(error, call)) {
                    throw asOurs(error, call);
                }
                await pause(attempt, error instanceof ProblemError ? error.retryAfter : undefined);
            }
        }
    }

    async json<T>(call: Call): Promise<T> {
        return this.send(call, async (answer) => (await answer.json()) as T);
    }

    async nothing(call: Call): Promise<void> {
        await this.send(call, async (answer) => void (await answer.arrayBuffer()));
    }
}

export function mayRepeat(error: unknown, call: { repeatable: boolean }): boolean {
    if (error instanceof ProblemError) {
        return error.status === 503; // The server says that it did nothing and may be asked again.
    }
    return call.repeatable || neverSent(error);
}

/** What fetch throws, as what this package throws; an abort by the caller stays what it is. */
export function asOurs(error: unknown, call: { signal?: AbortSignal | undefined }): unknown {
    if (error instanceof ProblemError || error instanceof ConnectionFailed || call.signal?.aborted) {
        return error;
    }
    const cause = (error as { cause?: { message?: string } }).cause?.message;
    return new ConnectionFailed(cause ?? String(error), { cause: error });
}
