// SPDX-License-Identifier: Apache-2.0
//
// Calls of tools that wait for a person.

import { Http } from './http.js';
import type { Approval, ApprovalAnswer, ApprovalList } from './schema.js';

/** A server's: `client.approvals`. Only an administrator answers; 409: the call no longer waits. */
export class Approvals {
    readonly #http: Http;

    constructor(http: Http) {
        this.#http = http;
    }

    /** Oldest first. What the tool's server and the code say in it is not to be trusted. */
    async list(): Promise<Approval[]> {
        const call = { method: 'GET', path: '/v1/approvals', repeatable: true };
        return (await this.#http.json<ApprovalList>(call)).approvals;
    }

    /** Lets the call go on. It is the review of a tool that is new or has changed, too. */
    async approve(approval: string): Promise<void> {
        await this.#answer(approval, { decision: 'approve' });
    }

    async deny(approval: string): Promise<void> {
        await this.#answer(approval, { decision: 'deny' });
    }

    async #answer(approval: string, json: ApprovalAnswer): Promise<void> {
        const path = `/v1/approvals/${encodeURIComponent(approval)}`;
        await this.#http.nothing({ method: 'POST', path, json, repeatable: false });
    }
}
