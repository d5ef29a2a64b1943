// SPDX-License-Identifier: Apache-2.0
//
// What the tests share.
import { Session } from 'cellkeep';

// Runs a test with one session, and always ends the session.
export async function within(options, body) {
    const session = await Session.create(options);
    try {
        return await body(session);
    } finally {
        await session.close();
    }
}

// A fetch whose answers the caller can spoil.
export const spoiling = (spoil) => async (url, init) => spoil(await fetch(url, init), new URL(url), init);

// The first `bytes` of an answer, then the connection is gone.
export function cut(answer, bytes) {
    const reader = answer.body.getReader();
    let left = bytes;
    const body = new ReadableStream({
        async pull(controller) {
            const piece = await reader.read();
            if (piece.done) {
                controller.close();
            } else if (left <= 0) {
                await reader.cancel();
                controller.error(new TypeError('terminated'));
            } else {
                controller.enqueue(piece.value.subarray(0, left));
                left -= piece.value.byteLength;
            }
        },
    });
    return new Response(body, { status: answer.status, headers: answer.headers });
}
