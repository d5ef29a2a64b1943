// SPDX-License-Identifier: Apache-2.0
//
// The bytes of one connection's stream, as they come.

import { ConnectionFailed } from './errors.js';

/** The server sends a heartbeat after five silent seconds; this much silence is a dead connection. */
const SILENCE_MS_MAX = 30_000;

/** Fails after too long a silence. */
export async function* piecesOf(answer: Response): AsyncGenerator<Uint8Array> {
    const reader = answer.body?.getReader();
    if (!reader) {
        return;
    }
    try {
        for (;;) {
            let timer: ReturnType<typeof setTimeout> | undefined;
            const silence = new Promise<never>((_, fail) => {
                const error = new ConnectionFailed('the server fell silent');
                timer = setTimeout(() => fail(error), SILENCE_MS_MAX);
            });
            const piece = await Promise.race([reader.read(), silence]).finally(() => clearTimeout(timer));
            if (piece.done) {
                return;
            }
            yield piece.value;
        }
    } finally {
        // Ignored: the caller reads no more of the stream, so an error in the rest does not matter.
        await reader.cancel().catch(() => undefined);
    }
}
