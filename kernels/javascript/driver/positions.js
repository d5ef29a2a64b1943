// SPDX-License-Identifier: Apache-2.0
//
// Edits of a source text, and the way back from a place in the edited text to the original.
// Offsets and columns count UTF-16 units from 0 here, lines from 0; `toSubmitted` makes what a
// person counts.
'use strict';

const { Array } = globalThis;

class Edits {
    constructor(source) {
        this.source = source;
        this.edits = [];
        this.moved = [];
    }

    // Replaces source[start, end) by text.
    replace(start, end, text) {
        this.edits.push({ start, end, text, rank: -Infinity });
    }

    insert(at, text) {
        this.replace(at, at, text);
    }

    // Inserts what ends something that begins at `from`. Of two at one place, the inner comes first.
    close(from, at, text) {
        this.edits.push({ start: at, end: at, text, rank: -from });
    }

    // Takes source[start, end) to the front: before + the text, itself edited, + after.
    move(start, end, before, after) {
        this.moved.push({ start, end, before, after });
    }

    // {code, segments}: segments are triples of generated offset, original offset, length.
    finish(before, after) {
        // Stable: of one rank, insertions keep the order in which they were made.
        this.edits.sort((a, b) => a.start - b.start || a.end - b.end || a.rank - b.rank);
        this.moved.sort((a, b) => a.start - b.start);
        this.code = before;
        this.segments = [];
        const own = this.#assign();
        for (const part of this.moved) {
            this.code += part.before;
            this.#emit(part.start, part.end, part.edits);
            this.code += part.after;
        }
        let at = 0;
        for (const part of this.moved) {
            this.#emit(at, part.start, own);
            at = part.end;
        }
        this.#emit(at, this.source.length, own);
        this.code += after;
        return { code: this.code, segments: this.segments };
    }

    // Gives each moved part its edits, in order. Returns the others.
    #assign() {
        const own = [];
        let at = 0;
        for (const part of this.moved) {
            part.edits = [];
        }
        for (const edit of this.edits) {
            while (at < this.moved.length && this.moved[at].end <= edit.start) {
                at++;
            }
            const part = this.moved[at];
            const inside = part !== undefined && edit.end > part.start && edit.start >= part.start;
            (inside ? part.edits : own).push(edit);
        }
        return own;
    }

    // Takes the edits up to `end` off the list.
    #emit(start, end, edits) {
        let at = start;
        while (edits.length > 0 && edits[0].end <= end) {
            const edit = edits.shift();
            this.#copy(at, edit.start);
            this.code += edit.text;
            at = edit.end;
        }
        this.#copy(at, end);
    }

    #copy(start, end) {
        if (end > start) {
            this.segments.push(this.code.length, start, end - start);
            this.code += this.source.slice(start, end);
        }
    }
}

function lineStarts(text) {
    const starts = [0];
    const ends = /\r\n|[\n\r\u2028\u2029]/g;
    while (ends.exec(text) !== null) {
        starts.push(ends.lastIndex);
    }
    return starts;
}

// The original offset of an offset in the generated text: of the copied text that holds it, or of
// the first that follows.
function originalOffset(segments, offset) {
    let last = 0;
    // Moved text comes first, so the generated offsets ascend and the original ones need not.
    for (let i = 0; i < segments.length; i += 3) {
        const generated = segments[i];
        const original = segments[i + 1];
        const length = segments[i + 2];
        if (offset < generated) {
            return original;
        }
        if (offset < generated + length) {
            return original + offset - generated;
        }
        last = original + length;
    }
    return last;
}

function lineOf(starts, offset) {
    let low = 0;
    for (let high = starts.length; high - low > 1; ) {
        const middle = (low + high) >> 1;
        if (starts[middle] <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// {line, column} from 1, columns in code points, of a place in the submitted text.
function toSubmitted(text, line, column) {
    const starts = lineStarts(text);
    const start = starts[line] ?? text.length;
    return { line: line + 1, column: Array.from(text.slice(start, start + column)).length + 1 };
}

function offsetToSubmitted(text, offset) {
    const starts = lineStarts(text);
    const line = lineOf(starts, offset);
    return toSubmitted(text, line, offset - starts[line]);
}

function lineText(text, line) {
    return text.split(/\r\n|[\n\r\u2028\u2029]/)[line - 1] ?? '';
}

module.exports = { Edits, lineOf, lineStarts, lineText, offsetToSubmitted, originalOffset, toSubmitted };
