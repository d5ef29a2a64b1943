// SPDX-License-Identifier: Apache-2.0
//
// TypeScript to JavaScript by swc's WebAssembly build, the library that Node itself strips types
// with. Types are blanked out in place, so every position stays; code that has more to it than types
// (enum, namespace, parameter properties) is compiled, with a source map.
'use strict';

const { lineStarts } = require('./positions');
const { CodeSyntaxError, TOO_DEEP, checkDepth } = require('./syntax');

let swc = null;

function load() {
    swc ??= require('@swc/wasm-typescript');
}

const AT_END = /got '<eof>'|Unexpected eof|^Unterminated (template|block comment)/;

function syntaxError(source, error) {
    if (typeof error?.code !== 'string') {
        // Not an answer: the library has run out of stack, and may be in any state.
        delete require.cache[require.resolve('@swc/wasm-typescript')];
        swc = null;
        return new CodeSyntaxError(TOO_DEEP, 0, false);
    }
    const starts = lineStarts(source);
    // swc counts columns in UTF-16 units from 0 and lines from 1.
    const start = starts[(error.startLine ?? 1) - 1] ?? source.length;
    const offset = Math.min(start + (error.startColumn ?? 0), source.length);
    const atEnd = AT_END.test(error.message) || offset >= source.trimEnd().length;
    return new CodeSyntaxError(error.message, offset, atEnd);
}

// {code, map}: map is null if positions are the same. Throws CodeSyntaxError.
function toJavaScript(source) {
    load();
    checkDepth(source);
    // An import or an enum that this cell does not use may be for the next.
    const transform = { verbatimModuleSyntax: true, noEmptyExport: true, tsEnumIsMutable: true };
    const options = { filename: 'cell.ts', module: true, transform };
    try {
        return { code: swc.transformSync(source, { ...options, mode: 'strip-only' }).code, map: null };
    } catch (error) {
        if (error?.code !== 'UnsupportedSyntax') {
            throw syntaxError(source, error);
        }
    }
    try {
        const { code, map } = swc.transformSync(source, { ...options, mode: 'transform', sourceMap: true });
        return { code, map };
    } catch (error) {
        throw syntaxError(source, error);
    }
}

module.exports = { load, toJavaScript };
