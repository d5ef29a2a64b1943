// SPDX-License-Identifier: Apache-2.0
//
// Batches: many candidates tried from one state, each in a session of its own.

import { ConnectionFailed, ProblemError } from './errors.js';
import { asOurs, Http, mayRepeat, pause } from './http.js';
import { piecesOf } from './pieces.js';
import type { Batch as BatchInfo, BatchLine, BatchRequest, BatchSummary } from './schema.js';

type Line = BatchLine | BatchSummary | { heartbeat: unknown };

/** One connection's lines. */
async function* linesOf(answer: Response): AsyncGenerator<Line> {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const piece of piecesOf(answer)) {
        const texts = (rest + decoder.decode(piece, { stream: true })).split('\n');
        rest = texts.pop() ?? '';
        for (const text of texts) {
            yield JSON.parse(text) as Line;
        }
    }
}

/** A batch that runs: `client.batch()`, `session.batch()`. */
export class Batch {
    readonly #http: Http;
    readonly #path: string;

    constructor(http: Http, public info: BatchInfo) {
        this.#http = http;
        this.#path = `/v1/batch/${encodeURIComponent(info.id)}`;
    }

    static async begin(http: Http, json: BatchRequest): Promise<Batch> {
        // Without a second try: the first may have begun.
        const headers = { Prefer: 'respond-async' };
        const call = { method: 'POST', path: '/v1/batch', json, headers, repeatable: false };
        return new Batch(http, await http.json<BatchInfo>(call));
    }

    get id(): string {
        return this.info.id;
    }

    /** Each item when it has ended, over as many connections as it takes; then `info` is the summary. */
    async *items(options: { signal?: AbortSignal } = {}): AsyncGenerator<BatchLine> {
        const { signal } = options;
        let seen = 0;
        let failures = 0;
        for (;;) {
            let trouble: unknown = new ConnectionFailed('the stream ended before the batch did');
            try {
                const query = { after: String(seen) };
                const path = `${this.#path}/lines`;
                const answer = await this.#http.once({ method: 'GET', path, query, repeatable: true, signal });
                for await (const line of linesOf(answer)) {
                    failures = 0;
                    if ('summary' in line) {
                        this.info = line.summary;
                        return;
                    }
                    if ('index' in line) {
                        ++seen;
                        yield line;
                    }
                }
            } catch (error) {
                if (signal?.aborted || !mayRepeat(error, { repeatable: true })) {
                    throw asOurs(error, { signal });
                }
                trouble = error;
            }
            if (++failures > this.#http.retries) {
                throw asOurs(trouble, { signal });
            }
            await pause(failures - 1, trouble instanceof ProblemError ? trouble.retryAfter : undefined);
        }
    }

    /** How it has ended; waits for that. */
    async summary(options: { signal?: AbortSignal } = {}): Promise<BatchInfo> {
        for await (const _ of this.items(options)) {
            // Only the end is wanted.
        }
        return this.info;
    }

    async refresh(): Promise<BatchInfo> {
        this.info = await this.#http.json<BatchInfo>({ method: 'GET', path: this.#path, repeatable: true });
        return this.info;
    }

    /** Ends what runs of it, and forgets it. Sessions that it has kept stay. */
    async close(): Promise<void> {
        try {
            await this.#http.nothing({ method: 'DELETE', path: this.#path, repeatable: true });
        } catch (error) {
            if (!(error instanceof ProblemError && error.status === 404)) {
                throw error;
            }
        }
    }
}
