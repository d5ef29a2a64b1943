// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints of a session.

import { Http } from './http.js';
import type {
    Checkpoint,
    CheckpointList,
    CheckpointMade,
    CheckpointRequest,
    FileComparison,
    RollbackRequest,
    RolledBack,
} from './schema.js';

/** A session's checkpoints: `session.checkpoints`. */
export class Checkpoints {
    readonly #http: Http;
    readonly #path: string;

    constructor(http: Http, sessionPath: string) {
        this.#http = http;
        this.#path = sessionPath;
    }

    /** Keeps the interpreter's memory and the workspace's files, at the end of a cell. */
    async make(options: CheckpointRequest = {}): Promise<CheckpointMade> {
        // Without a second try: the first may have made one.
        const call = { method: 'POST', path: `${this.#path}/checkpoints`, json: options, repeatable: false };
        return this.#http.json<CheckpointMade>(call);
    }

    /** Oldest first. */
    async list(): Promise<Checkpoint[]> {
        const call = { method: 'GET', path: `${this.#path}/checkpoints`, repeatable: true };
        return (await this.#http.json<CheckpointList>(call)).checkpoints;
    }

    async remove(checkpoint: string): Promise<void> {
        const path = `${this.#path}/checkpoints/${encodeURIComponent(checkpoint)}`;
        await this.#http.nothing({ method: 'DELETE', path, repeatable: false });
    }

    /** Goes back to a checkpoint. The state that is left becomes one, `left_as`, unless `discard` says otherwise. */
    async rollBack(checkpoint: string, options: Omit<RollbackRequest, 'checkpoint'> = {}): Promise<RolledBack> {
        const json = { checkpoint, ...options };
        const call = { method: 'POST', path: `${this.#path}/rollback`, json, repeatable: false };
        return this.#http.json<RolledBack>(call);
    }

    /**
     * The files that differ from those of a checkpoint, or of another session now: in a checkpoint of this session,
     * or now. A page of them; `after` is the `next` of the page before.
     */
    async diff(against: string, checkpoint?: string, page: { limit?: number; after?: string } = {}): Promise<FileComparison> {
        const limit = page.limit === undefined ? undefined : String(page.limit);
        const query = { against, checkpoint, limit, after: page.after };
        const call = { method: 'GET', path: `${this.#path}/diff`, query, repeatable: true };
        return this.#http.json<FileComparison>(call);
    }
}
