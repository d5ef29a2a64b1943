// SPDX-License-Identifier: Apache-2.0
//
// What can go wrong, as exceptions. A failed program is no exception: it is a result whose status says so.

import type { Problem } from './schema.js';
import type { Result } from './result.js';

/** The base of everything this package throws on purpose. */
export class CellkeepError extends Error {
    override name = 'CellkeepError';
}

/** The server was not reached, or went away before it answered. */
export class ConnectionFailed extends CellkeepError {
    override name = 'ConnectionFailed';
}

/** The code did not end with status `ok`; `result` is the whole answer. */
export class ExecutionFailed extends CellkeepError {
    override name = 'ExecutionFailed';

    constructor(readonly result: Result) {
        super(result.error ? `${result.error.name}: ${result.error.message}` : result.status);
    }
}

/** The server refused the request with a problem document (RFC 9457). */
export class ProblemError extends CellkeepError {
    override name = 'ProblemError';

    constructor(
        readonly status: number,
        /** The problem document as the server sent it. */
        readonly document: Partial<Problem>,
        /** Seconds after which to try again, if the server sent a time. */
        readonly retryAfter: number | undefined,
    ) {
        super(`${status} ${document.title ?? 'The request failed'}: ${document.detail ?? ''}`);
    }

    /** The problem's stable name: the last part of its `type`. */
    get kind(): string {
        return (this.document.type ?? '').replace(/^.*\//, '');
    }

    /** Every field at fault, when the body was. */
    get errors(): { pointer: string; message: string }[] {
        return this.document.errors ?? [];
    }
}

/** The problem of an answer that is no success. Reads its body. */
export async function problemOf(answer: Response): Promise<ProblemError> {
    const text = await answer.text().catch(() => '');
    let document: Partial<Problem> = { title: answer.statusText, detail: text.slice(0, 500) };
    try {
        const parsed: unknown = JSON.parse(text);
        if (typeof parsed === 'object' && parsed !== null && 'title' in parsed) {
            document = parsed as Partial<Problem>;
        }
    } catch {
        // Not JSON: a proxy between the client and the server answered; its text is the detail.
    }
    const retryAfter = Number(answer.headers.get('Retry-After') ?? NaN);
    return new ProblemError(answer.status, document, Number.isNaN(retryAfter) ? undefined : retryAfter);
}
