// SPDX-License-Identifier: Apache-2.0
//
// The way from the main thread, where user code runs, to the front thread, which owns descriptors 3
// and 4: a ring of bytes in shared memory. Nothing is delayed and nothing is written per line: the
// front thread takes whatever has gathered while it was writing. A full ring makes the writer wait.
//
// An interrupt may end the writing thread's JavaScript between any two instructions. So a record
// exists when HEAD is stored and not before, and half of one is overwritten by the next.
'use strict';

const { Atomics, Buffer, Int32Array, JSON, SharedArrayBuffer, TextEncoder, Uint8Array } = globalThis;

const RING_BYTES = 1 << 20;
const HEADER_BYTES = 5;
// The most characters of one text record, and the most bytes of one piece of an event.
const TEXT_MAX = 32 * 1024;
const PIECE_MAX = 128 * 1024;
// How long an ending process waits until its output is taken.
const FLUSH_MS_MAX = 2000;

// Words of the control block. HEAD and TAIL count bytes and wrap at 2^32.
const HEAD = 0;
const TAIL = 1;
const ASLEEP = 2; // the front thread wants a message before it looks again
const ANSWERED = 3; // counts answers to `input`
const INTERRUPTED = 4; // the id of the last execution that was interrupted
const ENDING = 5; // 1: the main thread waits in 'exit'; 2: everything is written
const CHILD = 6; // the main thread waits for a child process: 1 + how many others there are
const OTHERS = 8; // their process ids
const OTHERS_MAX = 1024;
const CONTROL_WORDS = OTHERS + OTHERS_MAX;

// Kinds of records.
const STDOUT = 1;
const STDERR = 2;
const PIECE = 3; // of an event, more to come
const EVENT = 4; // the last or only piece
const DONE = 5; // the same, and the running request ends with it

function makeShared() {
    return {
        control: new SharedArrayBuffer(CONTROL_WORDS * 4),
        ring: new SharedArrayBuffer(RING_BYTES),
    };
}

// JSON text without escapes for half a surrogate pair, which other parsers refuse.
function toJson(value) {
    const text = JSON.stringify(value);
    if (!text.includes('\\ud')) {
        return text;
    }
    return text.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, (found) => (found === '\\\\' ? found : '\ufffd'));
}

class Writer {
    // wake: called when the front thread sleeps.
    constructor(shared, wake) {
        this.control = new Int32Array(shared.control);
        this.ring = new Uint8Array(shared.ring);
        this.encoder = new TextEncoder();
        this.scratch = Buffer.alloc(PIECE_MAX);
        this.wake = wake;
    }

    text(kind, text) {
        for (let at = 0; at < text.length; ) {
            let end = at + TEXT_MAX;
            const last = end < text.length ? text.charCodeAt(end - 1) : 0;
            if (last >= 0xd800 && last < 0xdc00) {
                end -= 1; // never half a pair
            }
            const piece = at === 0 && end >= text.length ? text : text.slice(at, end);
            const { written } = this.encoder.encodeInto(piece, this.scratch);
            this.#record(kind, this.scratch, 0, written);
            at = end;
        }
    }

    event(event) {
        this.#pieces(EVENT, event);
    }

    done(event) {
        this.#pieces(DONE, event);
    }

    // Called when the process ends: waits until everything is written, for a while.
    flush() {
        Atomics.store(this.control, ENDING, 1);
        this.wake();
        Atomics.wait(this.control, ENDING, 1, FLUSH_MS_MAX);
    }

    #pieces(kind, event) {
        const bytes = Buffer.from(toJson(event) + '\n');
        let at = 0;
        for (; bytes.length - at > PIECE_MAX; at += PIECE_MAX) {
            this.#record(PIECE, bytes, at, at + PIECE_MAX);
        }
        this.#record(kind, bytes, at, bytes.length);
    }

    #record(kind, bytes, start, end) {
        const length = end - start;
        const { control, ring } = this;
        const head = Atomics.load(control, HEAD);
        for (;;) {
            const tail = Atomics.load(control, TAIL);
            if (RING_BYTES - ((head - tail) >>> 0) >= HEADER_BYTES + length) {
                break;
            }
            Atomics.wait(control, TAIL, tail);
        }
        const put = (offset, byte) => {
            ring[(head + offset) & (RING_BYTES - 1)] = byte;
        };
        put(0, kind);
        for (let i = 0; i < 4; i++) {
            put(1 + i, (length >>> (8 * i)) & 0xff);
        }
        const at = (head + HEADER_BYTES) & (RING_BYTES - 1);
        const first = length < RING_BYTES - at ? length : RING_BYTES - at;
        ring.set(bytes.subarray(start, start + first), at);
        ring.set(bytes.subarray(start + first, end), 0);
        Atomics.store(control, HEAD, (head + HEADER_BYTES + length) | 0);
        if (Atomics.exchange(control, ASLEEP, 0) === 1) {
            this.wake();
        }
    }
}

class Reader {
    constructor(shared) {
        this.control = new Int32Array(shared.control);
        this.ring = new Uint8Array(shared.ring);
    }

    // Bytes that next() would return now, records' headers included.
    get available() {
        return (Atomics.load(this.control, HEAD) - Atomics.load(this.control, TAIL)) >>> 0;
    }

    // The next record as [kind, Buffer], or null if there is none.
    next() {
        const tail = Atomics.load(this.control, TAIL);
        if (tail === Atomics.load(this.control, HEAD)) {
            return null;
        }
        const header = this.#copy(tail, HEADER_BYTES);
        const length = header.readUInt32LE(1);
        const bytes = this.#copy((tail + HEADER_BYTES) | 0, length);
        Atomics.store(this.control, TAIL, (tail + HEADER_BYTES + length) | 0);
        Atomics.notify(this.control, TAIL);
        return [header[0], bytes];
    }

    // True if the writer will wake us; false if a record came in the meantime.
    sleep() {
        Atomics.store(this.control, ASLEEP, 1);
        if (Atomics.load(this.control, TAIL) === Atomics.load(this.control, HEAD)) {
            return true;
        }
        Atomics.store(this.control, ASLEEP, 0);
        return false;
    }

    #copy(position, length) {
        const at = position & (RING_BYTES - 1);
        const first = length < RING_BYTES - at ? length : RING_BYTES - at;
        const bytes = Buffer.allocUnsafe(length);
        bytes.set(this.ring.subarray(at, at + first), 0);
        bytes.set(this.ring.subarray(0, length - first), first);
        return bytes;
    }
}

module.exports = {
    ANSWERED,
    CHILD,
    DONE,
    ENDING,
    EVENT,
    HEADER_BYTES,
    INTERRUPTED,
    OTHERS,
    OTHERS_MAX,
    PIECE,
    RING_BYTES,
    Reader,
    STDERR,
    STDOUT,
    TEXT_MAX,
    Writer,
    makeShared,
    toJson,
};
