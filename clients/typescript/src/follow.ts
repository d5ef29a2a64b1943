// SPDX-License-Identifier: Apache-2.0
//
// The events of one execution or one process, over as many connections as it takes.

import { ConnectionFailed, ProblemError } from './errors.js';
import { EventDecoder, type Event } from './events.js';
import { asOurs, mayRepeat, pause, type Call, type Http } from './http.js';
import { piecesOf } from './pieces.js';

/** What is followed: an execution that `start` begins, or what is at `home`. */
export interface Followed {
    start?: Call;
    home?: string;
    /** The number of the last event that the caller has. */
    after?: number | undefined;
    /** The type of the last event. */
    ends: string;
    signal?: AbortSignal | undefined;
}

const ACCEPT = { Accept: 'text/event-stream' };

/** One connection's events. */
async function* eventsOf<E>(answer: Response): AsyncGenerator<E> {
    const decoder = new EventDecoder<E>();
    for await (const piece of piecesOf(answer)) {
        yield* decoder.feed(piece);
    }
}

/** The next connection's request. */
function requestOf(followed: Followed, home: string | undefined, last: number | undefined): Call {
    const { start, signal } = followed;
    if (home === undefined && start) {
        return { ...start, headers: { ...start.headers, ...ACCEPT } };
    }
    const headers = last === undefined ? ACCEPT : { ...ACCEPT, 'Last-Event-ID': String(last) };
    return { method: 'GET', path: `${home}/events`, headers, repeatable: true, signal };
}

/** Every event up to the last, none twice. */
export async function* follow<E extends { seq?: number; type: string } = Event>(
    http: Http,
    followed: Followed,
): AsyncGenerator<E> {
    const { start, ends, signal } = followed;
    let { home, after: last } = followed;
    let failures = 0;
    for (;;) {
        let trouble: unknown = new ConnectionFailed('the stream ended before what it tells of did');
        try {
            const answer = await http.once(requestOf(followed, home, last));
            if (answer.status === 204) {
                return;
            }
            const location = answer.headers.get('Location');
            if (home === undefined && start && location) {
                home = `${start.path}/${location.split('/').pop()}`;
            }
            for await (const event of eventsOf<E>(answer)) {
                failures = 0;
                if (event.seq !== undefined) {
                    if (last !== undefined && event.seq <= last) {
                        continue;
                    }
                    last = event.seq;
                }
                yield event;
                if (event.type === ends) {
                    return;
                }
            }
        } catch (error) {
            if (signal?.aborted || !mayRepeat(error, { repeatable: true })) {
                throw asOurs(error, { signal });
            }
            trouble = error;
        }
        if (++failures > http.retries) {
            throw asOurs(trouble, { signal });
        }
        await pause(failures - 1, trouble instanceof ProblemError ? trouble.retryAfter : undefined);
    }
}
