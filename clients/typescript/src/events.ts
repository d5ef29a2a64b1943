// SPDX-License-Identifier: Apache-2.0
//
// Server-sent events from bytes, however they are cut (WHATWG HTML, 9.2.6).

import type { Event } from './schema.js';

export type { Event, ProcessEvent } from './schema.js';

/** Events of an execution, or of what else the caller follows. */
export class EventDecoder<E = Event> {
    readonly #text = new TextDecoder();
    #rest = '';
    #data: string[] = [];

    feed(chunk: Uint8Array): E[] {
        const lines = (this.#rest + this.#text.decode(chunk, { stream: true })).split('\n');
        this.#rest = lines.pop() ?? '';
        const events: E[] = [];
        for (const raw of lines) {
            const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
            if (line === '') {
                if (this.#data.length > 0) {
                    events.push(JSON.parse(this.#data.join('\n')) as E);
                    this.#data = [];
                }
            } else if (line.startsWith('data:')) {
                this.#data.push(line.slice(line.startsWith('data: ') ? 6 : 5));
            }
        }
        return events;
    }
}
