// SPDX-License-Identifier: Apache-2.0
//
// Branches of a session: sessions that go on from a checkpoint of it, or from now.

import { Batch } from './batches.js';
import { ProblemError } from './errors.js';
import { Http } from './http.js';
import { Result } from './result.js';
import type {
    BatchLine,
    BatchRequest,
    BranchesRequest,
    Branches as BranchesMade,
    Merged,
    MergeRequest,
    Session as SessionInfo,
} from './schema.js';

/** What a batch from a session takes besides its items. */
export type BatchOptions = Omit<BatchRequest, 'items' | 'session' | 'from'> & {
    from?: Omit<NonNullable<BatchRequest['from']>, 'session'>;
};

function answerOf(line: BatchLine): Result | ProblemError {
    if (line.execution) {
        return new Result(line.execution);
    }
    const problem = line.error ?? { status: 409, title: 'The answer is not there', detail: line.reason ?? 'omitted' };
    return new ProblemError(problem.status, problem, undefined);
}

/** A session's: `session.branches`. The session was created with `checkpoints: { branches: true }`. */
export class Branches<S> {
    readonly #http: Http;
    readonly #id: string;
    readonly #open: (info: SessionInfo) => S;

    constructor(http: Http, id: string, open: (info: SessionInfo) => S) {
        this.#http = http;
        this.#id = id;
        this.#open = open;
    }

    /** In place of one that there is not: why. */
    async make(request: BranchesRequest = {}): Promise<(S | ProblemError)[]> {
        // Without a second try: the first may have made some.
        const path = `/v1/sessions/${this.#id}/branches`;
        const call = { method: 'POST', path, json: request, repeatable: false };
        const made = await this.#http.json<BranchesMade>(call);
        return made.branches.map((one) =>
            'session' in one ? this.#open(one.session) : new ProblemError(one.error.status, one.error, undefined),
        );
    }

    /**
     * Takes what a branch has changed in its files. Where both have changed the same it fails with the kind
     * `merge-conflict`, whose `document.conflicts` names them, unless `force` says that the branch wins.
     */
    async merge(from: string, options: Omit<MergeRequest, 'from'> = {}): Promise<Merged> {
        const path = `/v1/sessions/${this.#id}/merge`;
        return this.#http.json<Merged>({ method: 'POST', path, json: { from, ...options }, repeatable: false });
    }

    /** Runs each item in a branch of its own, some at a time. */
    async batch(items: BatchRequest['items'], options: BatchOptions = {}): Promise<Batch> {
        return Batch.begin(this.#http, { ...options, from: { ...options.from, session: this.#id }, items });
    }

    /** The same, whole: the answers in the order of the items. */
    async tryAll(items: BatchRequest['items'], options: BatchOptions = {}): Promise<(Result | ProblemError)[]> {
        const batch = await this.batch(items, options);
        const answers: (Result | ProblemError)[] = [];
        try {
            for await (const line of batch.items()) {
                answers[line.index] = answerOf(line);
            }
        } finally {
            await batch.close();
        }
        return answers;
    }
}
