// SPDX-License-Identifier: Apache-2.0
//
// process.stdout and process.stderr, and with them console, as events in order with everything else
// that a cell shows. What writes to descriptors 1 and 2 itself goes to the session's pipes.
'use strict';

const { ArrayBuffer, Buffer, Object, Set, console, process } = globalThis;
const { Writable } = require('node:stream');
const { StringDecoder } = require('node:string_decoder');

const { STDERR, STDOUT } = require('./channel');

const UTF8 = new Set(['utf8', 'utf-8', 'buffer']);

class OutputStream extends Writable {
    constructor(writer, kind, fd) {
        super({ decodeStrings: false, highWaterMark: 1 << 20 });
        this.fd = fd;
        Object.defineProperties(this, {
            writer: { value: writer },
            kind: { value: kind },
            decoder: { value: new StringDecoder('utf8') },
            encoding: { value: 'utf8', writable: true },
        });
    }

    // All of it is written here. Writable's own way would remember a write that an interrupt has
    // ended as one that goes on, and keep everything behind it for ever.
    write(chunk, encoding, callback) {
        if (typeof encoding === 'function') {
            [encoding, callback] = [undefined, encoding];
        }
        if (typeof chunk !== 'string' && !ArrayBuffer.isView(chunk)) {
            return super.write(chunk, encoding, callback); // throws
        }
        this.writer.text(this.kind, this.#decode(chunk, encoding ?? this.encoding));
        if (typeof callback === 'function') {
            process.nextTick(callback, null);
        }
        return true;
    }

    #decode(chunk, encoding) {
        if (typeof chunk !== 'string') {
            return this.decoder.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
        }
        if (UTF8.has(encoding)) {
            return chunk;
        }
        return this.decoder.write(Buffer.from(chunk, encoding));
    }

    setDefaultEncoding(encoding) {
        super.setDefaultEncoding(encoding); // or throws
        this.encoding = encoding;
        return this;
    }

    // Ending or destroying the session's own output does nothing, as in Node.
    _destroy(error, done) {
        done(error);
    }

    end() {
        return this;
    }

    destroy() {
        return this;
    }
}

// Returns {stdout, stderr}. Before anything has used console.
function installStreams(writer) {
    const streams = {
        stdout: new OutputStream(writer, STDOUT, 1),
        stderr: new OutputStream(writer, STDERR, 2),
    };
    for (const [name, stream] of Object.entries(streams)) {
        Object.defineProperty(process, name, { value: stream, configurable: true, enumerable: true });
    }
    return streams;
}

// Indentation by console.group() ends with the cell that began it.
function watchGroups() {
    let depth = 0;
    const end = console.groupEnd;
    for (const name of ['group', 'groupCollapsed']) {
        const begin = console[name];
        console[name] = function group(...values) {
            depth += 1;
            begin.apply(console, values);
        };
    }
    console.groupEnd = function groupEnd() {
        depth = depth > 0 ? depth - 1 : 0;
        end.call(console);
    };
    return function endAll() {
        while (depth > 0) {
            console.groupEnd();
        }
    };
}

module.exports = { installStreams, watchGroups };
