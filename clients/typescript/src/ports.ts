// SPDX-License-Identifier: Apache-2.0
//
// Servers that code starts inside a session.

import { Http } from './http.js';
import type { IssuedPortToken, PortToken, PortTokenRequest, PortTokens } from './schema.js';

/** The ports of a session: `session.ports`. */
export class Ports {
    readonly #http: Http;
    readonly #path: string;

    constructor(http: Http, sessionPath: string) {
        this.#http = http;
        this.#path = `${sessionPath}/ports`;
    }

    /**
     * An address for the server that listens inside at 127.0.0.1 and this port: `url` for a browser, `token` for
     * programs. Both are for this port alone, until they expire or are revoked.
     */
    async open(port: number, options: PortTokenRequest = {}): Promise<IssuedPortToken> {
        const call = { method: 'POST', path: `${this.#path}/${port}/tokens`, json: options, repeatable: false };
        return this.#http.json<IssuedPortToken>(call);
    }

    /** The tokens of a port that have not expired. */
    async tokens(port: number): Promise<PortToken[]> {
        const call = { method: 'GET', path: `${this.#path}/${port}/tokens`, repeatable: true };
        return (await this.#http.json<PortTokens>(call)).tokens;
    }

    /** Makes an address useless from now on; what is connected stays connected. */
    async close(address: PortToken): Promise<void> {
        const path = `${this.#path}/${address.port}/tokens/${encodeURIComponent(address.token_id)}`;
        await this.#http.nothing({ method: 'DELETE', path, repeatable: true });
    }
}
