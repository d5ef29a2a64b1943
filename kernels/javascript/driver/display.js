// SPDX-License-Identifier: Apache-2.0
//
// How values are shown: the MIME bundle of a value, and the `display` function that user code calls.
'use strict';

const { Array, ArrayBuffer, Buffer, Object, Set, String, Symbol, TypeError } = globalThis;
const { randomUUID } = require('node:crypto');
const fs = require('node:fs');
const util = require('node:util');

// An object that has it says itself how it is shown: a function that returns a MIME bundle, or a
// promise of one. Deno's Jupyter kernel has the same name for it.
const HOOK = Symbol.for('Jupyter.display');

const PNG = Buffer.from('89504e470d0a1a0a', 'hex');
const MAGIC = [
    ['image/png', (bytes) => bytes.subarray(0, 8).equals(PNG)],
    ['image/jpeg', (bytes) => bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff],
    ['image/gif', (bytes) => /^GIF8[79]a/.test(bytes.toString('latin1', 0, 6))],
    ['image/webp', (bytes) => /^RIFF....WEBP/s.test(bytes.toString('latin1', 0, 12))],
];
const isText = (mime) => /^text\/|^image\/svg\+xml$|^application\/(javascript|xml)$/.test(mime);
const isJson = (mime) => /^application\/(.*\+)?json$/.test(mime);

function toBytes(value) {
    if (value instanceof ArrayBuffer) {
        return Buffer.from(value);
    }
    if (util.types.isUint8Array(value)) {
        return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    return null;
}

// Text as text, JSON as it is, everything else as base64.
function encode(mime, value) {
    if (isJson(mime)) {
        return value;
    }
    const bytes = toBytes(value);
    if (isText(mime)) {
        return bytes === null ? String(value) : bytes.toString();
    }
    return bytes === null ? String(value) : bytes.toString('base64');
}

function encodeBundle(bundle) {
    if (bundle === null || typeof bundle !== 'object') {
        throw new TypeError(`a MIME bundle is an object, not ${util.inspect(bundle)}`);
    }
    const data = {};
    for (const [mime, value] of Object.entries(bundle)) {
        if (!/^[\w.+-]+\/[\w.+-]+$/.test(mime)) {
            throw new TypeError(`${util.inspect(mime)} is not a MIME type`);
        }
        if (value !== undefined && value !== null) {
            data[mime] = encode(mime, value);
        }
    }
    return data;
}

function ownBundle(value) {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null || util.types.isProxy(value)) {
        return null;
    }
    if (typeof value[HOOK] === 'function') {
        return value[HOOK]();
    }
    for (const [method, mime] of [['toHtml', 'text/html'], ['toHTML', 'text/html'], ['toSVG', 'image/svg+xml']]) {
        if (typeof value[method] === 'function') {
            const shown = value[method]();
            if (typeof shown === 'string') {
                return { [mime]: shown };
            }
        }
    }
    return null;
}

function inspect(value) {
    return util.inspect(value, { depth: 4 });
}

// {data, metadata} of a value, or a promise of it.
function bundleOf(value) {
    const own = ownBundle(value);
    if (own === null) {
        return { data: { 'text/plain': inspect(value) }, metadata: {} };
    }
    const finish = (bundle) => {
        const data = encodeBundle(bundle);
        return { data: 'text/plain' in data ? data : { 'text/plain': inspect(value), ...data }, metadata: {} };
    };
    return util.types.isPromise(own) ? own.then(finish) : finish(own);
}

function escapeHtml(text) {
    const names = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
    return text.replace(/[&<>"]/g, (one) => names[one]);
}

const TABLE_ROWS_MAX = 1000;

// An array of objects as a table; text is what console.table shows less of.
function tableBundle(rows) {
    if (!Array.isArray(rows) || rows.some((row) => row === null || typeof row !== 'object')) {
        throw new TypeError('display.table takes an array of objects');
    }
    const shown = rows.slice(0, TABLE_ROWS_MAX);
    const columns = [...new Set(shown.flatMap((row) => Object.keys(row)))];
    const text = (value) => (typeof value === 'string' ? value : value === undefined ? '' : util.inspect(value));
    const cells = (tag, values) => values.map((one) => `<${tag}>${escapeHtml(one)}</${tag}>`).join('');
    const lines = shown.map((row) => `<tr>${cells('td', columns.map((column) => text(row[column])))}</tr>`);
    const more = rows.length - shown.length;
    return {
        'text/plain': util.inspect(rows),
        'text/html':
            `<table><thead><tr>${cells('th', columns)}</tr></thead><tbody>${lines.join('\n')}</tbody></table>` +
            (more > 0 ? `<p>${more} more rows</p>` : ''),
    };
}

// What display() returns: shows another value in the same place.
class Display {
    #host;

    constructor(host, id) {
        this.#host = host;
        this.id = id;
    }

    update(value) {
        return this.#host.show(value, { display_id: this.id, update: true });
    }
}

// makeDisplay(send): `send` takes a display or clear event.
function makeDisplay(send) {
    const emit = ({ data, metadata }, options) => {
        const id = options.display_id === undefined ? randomUUID() : String(options.display_id);
        const event = { event: 'display', data, metadata: { ...metadata, ...options.metadata }, display_id: id };
        send(options.update ? { ...event, update: true } : event);
        return new Display(host, id);
    };
    const host = {
        show(value, options = {}) {
            const bundle = options.raw ? { data: encodeBundle(value), metadata: {} } : bundleOf(value);
            return util.types.isPromise(bundle)
                ? bundle.then((ready) => emit(ready, options))
                : emit(bundle, options);
        },
    };
    const raw = (mime, value, options) => emit({ data: encodeBundle({ [mime]: value }), metadata: {} }, options ?? {});

    function display(value, options) {
        return host.show(value, options);
    }
    display.html = (text, options) => raw('text/html', text, options);
    display.svg = (text, options) => raw('image/svg+xml', text, options);
    display.markdown = (text, options) => raw('text/markdown', text, options);
    display.latex = (text, options) => raw('text/latex', text, options);
    display.text = (text, options) => raw('text/plain', text, options);
    display.json = (value, options) => raw('application/json', value, options);
    display.png = (bytes, options) => raw('image/png', bytes, options);
    display.jpeg = (bytes, options) => raw('image/jpeg', bytes, options);
    display.image = (image, options) => {
        const bytes = typeof image === 'string' ? fs.readFileSync(image) : toBytes(image);
        if (bytes === null) {
            throw new TypeError('display.image takes the bytes of an image or the name of a file');
        }
        const found = MAGIC.find(([, is]) => is(bytes));
        if (found) {
            return raw(found[0], bytes, options);
        }
        if (/^\s*(<\?xml|<svg|<!--)/.test(bytes.toString('utf8', 0, 256))) {
            return raw('image/svg+xml', bytes, options);
        }
        throw new TypeError('not an image of a known kind: PNG, JPEG, GIF, WebP or SVG');
    };
    display.table = (rows, options) => emit({ data: tableBundle(rows), metadata: {} }, options ?? {});
    display.bundle = (bundle, options) => emit({ data: encodeBundle(bundle), metadata: {} }, options ?? {});
    display.update = (id, value, options) => host.show(value, { ...options, display_id: id, update: true });
    display.clear = (options) => send({ event: 'clear', wait: options?.wait === true });
    display.symbol = HOOK;
    return display;
}

module.exports = { Display, HOOK, bundleOf, encodeBundle, inspect, makeDisplay };
