// SPDX-License-Identifier: Apache-2.0
//
// Errors of user code: stack traces that name places of submitted cells and none of the driver's own
// frames, and the report of an error that ends a cell.
'use strict';

const { Array, Error, JSON, Map, Number, Object, RangeError, ReferenceError, RegExp, String, SyntaxError, WeakMap } =
    globalThis;
const { SourceMap } = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const util = require('node:util');

const { lineOf, lineStarts, lineText, originalOffset, toSubmitted } = require('./positions');

// How many cells, and characters of them, are kept to find submitted places. Places in older cells
// stay as the engine has them.
const CELLS_MAX = 1000;
const TEXT_MAX = 16 * 1024 * 1024;
const FRAMES_MAX = 50;
const PREFIX = 'cellkeep:cell/';
const PLACE = /cellkeep:cell\/(\d+):(\d+):(\d+)/;
// Frames of the driver and of Node's own machinery tell a reader nothing.
const HIDDEN = [__dirname + path.sep, pathToFileURL(__dirname).href, 'node:internal/'];

const IMPORT_CODES = new RegExp(
    '^(MODULE_NOT_FOUND|ERR_(MODULE_NOT_FOUND|PACKAGE_PATH_NOT_EXPORTED|PACKAGE_IMPORT_NOT_DEFINED|' +
        'UNSUPPORTED_DIR_IMPORT|REQUIRE_ESM|UNKNOWN_FILE_EXTENSION|UNKNOWN_BUILTIN_MODULE|' +
        'INVALID_MODULE_SPECIFIER|INVALID_PACKAGE_TARGET|UNSUPPORTED_ESM_URL_SCHEME|NO_SUCH_EXPORT))$',
);

// The cell was interrupted.
class KeyboardInterrupt extends Error {
    constructor() {
        super('the cell was interrupted');
    }
}
Object.defineProperty(KeyboardInterrupt.prototype, 'name', { value: 'KeyboardInterrupt' });

// process.exit() was called: ends the cell, not the session.
class ProcessExit extends Error {
    constructor(code) {
        super(`exit(${code}) was called, which ends the cell and not the session`);
        this.exitCode = code;
    }
}
Object.defineProperty(ProcessExit.prototype, 'name', { value: 'ProcessExit' });

const UNREADABLE = "the error's own text cannot be made";

// Reading an error's properties runs user code, and may fail.
function readable(read, otherwise) {
    try {
        return String(read());
    } catch {
        return otherwise;
    }
}

class Errors {
    constructor() {
        this.cells = new Map(); // serial → what is needed to find places
        this.serial = 0;
        this.size = 0;
        this.places = new WeakMap(); // error → its frames in cells, innermost first
    }

    // Returns the file name under which the engine shall know the cell.
    add(count, source, js, map, prepared) {
        this.serial += 1;
        const size = source.length + js.length + prepared.code.length + (map === null ? 0 : map.length);
        this.cells.set(this.serial, { count, source, js, map, size, ...prepared });
        this.size += size;
        for (const [serial, cell] of this.cells) {
            if (serial === this.serial || (this.cells.size <= CELLS_MAX && this.size <= TEXT_MAX)) {
                break;
            }
            this.cells.delete(serial); // the oldest
            this.size -= cell.size;
        }
        return PREFIX + this.serial;
    }

    // Calls and awaits; an error that comes from no cell is placed where this was called.
    async locate(call) {
        const here = new Error();
        void here.stack; // finds its places
        try {
            return await call();
        } catch (error) {
            try {
                void error.stack;
                if (!this.places.has(error)) {
                    this.places.set(error, this.places.get(here) ?? []);
                }
            } catch {
                // Not an object, or one that cannot be read.
            }
            throw error;
        }
    }

    // Makes Error.stack ours. Returned as Error.prepareStackTrace wants it.
    prepare(error, sites) {
        const header = readable(() => this.#header(error), 'Error');
        return this.#frames(error, sites).reduce((text, frame) => `${text}\n    at ${frame}`, header);
    }

    // What `done` says of an error that ends the cell of this file name.
    describe(error, fileName) {
        const thrown = util.types.isNativeError(error) || error instanceof Error;
        const name = thrown ? readable(() => error.name, 'Error') : 'Uncaught';
        const text = readable(() => (thrown ? error.message : util.inspect(error)), UNREADABLE);
        const { line, column, shown } = this.#where(error, fileName);
        const plain = thrown ? `${name}: ${text}` : `${name} ${text}`;
        // Without frames inspect() would put an interrupt in brackets.
        const whole = thrown && !(error instanceof KeyboardInterrupt);
        const body = whole ? readable(() => util.inspect(error), plain) : plain;
        const traceback = [...shown, ...this.#withoutExcerpt(body).split('\n')];
        const found = { status: 'error', name, message: text, traceback, kind: this.#kind(error) };
        return line === undefined ? found : { ...found, line, column };
    }

    // The same for an error that no cell waits for: text for stderr.
    describeUncaught(error, what) {
        try {
            const { shown } = this.#where(error, null);
            const text = this.#withoutExcerpt(util.inspect(error));
            return `${shown.map((one) => one + '\n').join('')}${what} ${text}\n`;
        } catch {
            return `${what} an error whose text cannot be made\n`;
        }
    }

    #kind(error) {
        try {
            if (error instanceof KeyboardInterrupt) {
                return 'interrupt';
            }
            if (IMPORT_CODES.test(error?.code)) {
                return 'import';
            }
            if (error instanceof SyntaxError && this.#refused(error) !== null) {
                return 'syntax';
            }
            if (error instanceof RangeError && /allocation failed|Invalid (array|string) length/.test(error.message)) {
                return 'memory';
            }
        } catch {
            // An error that cannot be read is like any other.
        }
        return 'runtime';
    }

    #header(error) {
        const name = error.name === undefined ? 'Error' : String(error.name);
        const message = error.message === undefined ? '' : String(error.message);
        return message && name ? `${name}: ${message}` : message || name;
    }

    #frames(error, sites) {
        const frames = [];
        const places = [];
        let lastOfCell = -1;
        for (const site of sites) {
            const file = site.getFileName() ?? '';
            if (HIDDEN.some((one) => file.startsWith(one)) || frames.length >= FRAMES_MAX) {
                continue;
            }
            let frame = String(site);
            const found = PLACE.exec(frame);
            if (found !== null) {
                let place = this.#place(Number(found[1]), found[2] - 1, found[3] - 1);
                if (place === null) {
                    continue; // the call of the function that the cell was made
                }
                if (frames.length === 0) {
                    place = this.#named(error, place);
                }
                places.push(place);
                frame = frame.replace(PLACE, `[cell ${place.count}]:${place.line}:${place.column}`);
                lastOfCell = frames.length;
            }
            frames.push(frame);
        }
        if (lastOfCell >= 0) {
            frames.length = lastOfCell + 1; // what called it is Node's own
            this.places.set(error, places);
        }
        return frames;
    }

    // The submitted place of a place in a cell's script; null if it is none.
    #place(serial, line, column) {
        const cell = this.cells.get(serial);
        if (cell === undefined) {
            return { serial, count: '?', line: line + 1, column: column + 1 };
        }
        cell.starts ??= lineStarts(cell.code);
        const offset = cell.starts[line] + column;
        const { segments } = cell;
        if (offset >= cell.suffix) {
            return null;
        }
        return { serial, count: cell.count, ...this.#submitted(cell, originalOffset(segments, offset)) };
    }

    #submitted(cell, offset) {
        cell.jsStarts ??= lineStarts(cell.js);
        let line = lineOf(cell.jsStarts, offset);
        let column = offset - cell.jsStarts[line];
        if (cell.map !== null) {
            cell.sourceMap ??= new SourceMap(JSON.parse(cell.map));
            const entry = cell.sourceMap.findEntry(line, column);
            line = entry.originalLine ?? line;
            column = entry.originalColumn ?? column;
        }
        return toSubmitted(cell.source, line, column);
    }

    // The engine finds an unknown name at the start of its statement; the name itself is meant.
    #named(error, place) {
        const name = readable(() => /^(\S+) is not defined$/.exec(error.message)?.[1] ?? '', '');
        const cell = this.cells.get(place.serial);
        if (!name || !cell || !(error instanceof ReferenceError)) {
            return place;
        }
        const units = Array.from(lineText(cell.source, place.line));
        const before = units.slice(0, place.column - 1).join('');
        const rest = units.slice(place.column - 1).join('');
        const escaped = name.replace(/[$]/g, '\\$&');
        const found = new RegExp(`(?<![\\p{ID_Continue}$.])${escaped}(?![\\p{ID_Continue}$])`, 'u').exec(rest);
        const at = found === null ? 0 : found.index;
        return { ...place, column: Array.from(before + rest.slice(0, at)).length + 1 };
    }

    // The engine's own place of a SyntaxError of the script it refused: it heads the stack.
    #refused(error) {
        const found = /^cellkeep:cell\/(\d+):(\d+)\n.*\n([ \t]*)\^/.exec(error.stack);
        return found && this.#place(Number(found[1]), found[2] - 1, found[3].length);
    }

    #withoutExcerpt(text) {
        return text.replace(/^cellkeep:cell\/\d+:\d+\n.*\n[ \t]*\^+\s*\n/, '');
    }

    // {line, column, shown}: the innermost place in that cell, and the lines that show it.
    #where(error, fileName) {
        let place;
        try {
            const stack = error.stack; // makes the frames, if they are not made yet
            place = (this.places.get(error) ?? []).find((one) => fileName === null || PREFIX + one.serial === fileName);
            if (place === undefined && typeof stack === 'string' && error instanceof SyntaxError) {
                place = this.#refused(error) ?? undefined;
            }
        } catch {
            // Not an error, or one that cannot be read.
        }
        const cell = this.cells.get(place?.serial);
        if (cell === undefined) {
            return { shown: [] };
        }
        const { line, column } = place;
        const text = lineText(cell.source, line);
        const gap = Array.from(text).slice(0, column - 1).map((one) => (one === '\t' ? one : ' '));
        return { line, column, shown: [`[cell ${cell.count}]:${line}:${column}`, text, gap.join('') + '^', ''] };
    }
}

module.exports = { Errors, KeyboardInterrupt, ProcessExit };
