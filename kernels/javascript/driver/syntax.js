// SPDX-License-Identifier: Apache-2.0
//
// Reading JavaScript: the parser's options, its errors in the engine's words, walking the tree, and
// whether code is complete.
'use strict';

const acorn = require('acorn');

// The code is wrong. offset: where, in the text that was parsed; atEnd: more code could mend it.
class CodeSyntaxError extends Error {
    constructor(message, offset, atEnd) {
        super(message);
        this.name = 'SyntaxError';
        this.offset = offset;
        this.atEnd = atEnd;
    }
}

const OPTIONS = {
    ecmaVersion: 'latest',
    sourceType: 'script',
    allowAwaitOutsideFunction: true,
    allowImportExportEverywhere: true,
    allowHashBang: true,
};

const DEPTH_MAX = 1000;
const TOO_DEEP = 'The code is nested too deeply';
const UNFINISHED = /^Unterminated (template|comment)/;
const NO_HANDLER = /^Missing catch or finally/; // said of the `try`

function describe(source, offset, message) {
    if (message === "Unexpected character '@'") {
        return `${message}: decorators are not supported`;
    }
    if (message !== 'Unexpected token') {
        return message;
    }
    if (offset >= source.trimEnd().length) {
        return 'Unexpected end of input';
    }
    try {
        const token = acorn.tokenizer(source.slice(offset), OPTIONS).getToken();
        const text = source.slice(offset + token.start, offset + token.end);
        if (token.type.label === 'string') {
            return 'Unexpected string';
        }
        return token.type.label === 'num' ? 'Unexpected number' : `Unexpected token '${text}'`;
    } catch {
        return `Unexpected token '${source[offset]}'`; // what follows is no token at all
    }
}

// {deepest, open}: how deep the code goes in brackets, and how deep it ends.
function nesting(source) {
    let open = 0;
    let deepest = 0;
    try {
        for (const token of acorn.tokenizer(source, OPTIONS)) {
            if (/^(\{|\(|\[|\$\{)$/.test(token.type.label)) {
                deepest = Math.max(deepest, ++open);
            } else if (/^(\}|\)|\])$/.test(token.type.label)) {
                open--;
            }
        }
    } catch {
        // The rest is an unfinished comment, template or string, or an error for the parser.
    }
    return { deepest, open: Math.max(open, 0) };
}

// Code so deep that a parser comes to the end of its stack can end the process: where a regular
// expression is compiled there, V8 gives up.
function checkDepth(source) {
    const brackets = source.split(/[([{]/).length - 1;
    if (brackets > DEPTH_MAX && nesting(source).deepest > DEPTH_MAX) {
        throw new CodeSyntaxError(TOO_DEEP, 0, false);
    }
}

// The program's tree. Throws CodeSyntaxError.
function parse(source) {
    checkDepth(source);
    try {
        return acorn.parse(source, OPTIONS);
    } catch (error) {
        if (error instanceof RangeError) {
            throw new CodeSyntaxError(TOO_DEEP, 0, false); // the stack's end
        }
        if (typeof error.pos !== 'number') {
            throw error;
        }
        const message = error.message.replace(/ \(\d+:\d+\)$/, '');
        const end = source.trimEnd();
        const atEnd =
            error.pos >= end.length ||
            UNFINISHED.test(message) ||
            (NO_HANDLER.test(message) && end.endsWith('}'));
        throw new CodeSyntaxError(describe(source, error.pos, message), error.pos, atEnd);
    }
}

// The nodes directly below a node, in order of their fields.
function* children(node) {
    for (const key in node) {
        const value = node[key];
        if (Array.isArray(value)) {
            for (const item of value) {
                if (item !== null && typeof item === 'object' && typeof item.type === 'string') {
                    yield item;
                }
            }
        } else if (value !== null && typeof value === 'object' && typeof value.type === 'string') {
            yield value;
        }
    }
}

// Calls visit(node, ancestors) for every node, from the outside in; ancestors end with the parent.
// Without recursion: an expression of a hundred thousand terms is as deep.
function walk(root, visit) {
    const stack = [[root, null]];
    while (stack.length > 0) {
        const link = stack.pop();
        visit(link[0], link[1]);
        const below = [...children(link[0])];
        for (let i = below.length - 1; i >= 0; i--) {
            stack.push([below[i], link]);
        }
    }
}

// The ancestors of a walk's link, from the inside out.
function* upwards(link) {
    for (let at = link; at !== null; at = at[1]) {
        yield at[0];
    }
}

const isFunction = (node) => /^(Function|ArrowFunction)/.test(node.type);

// The identifiers that a pattern binds or assigns to.
function targets(pattern, found = []) {
    if (pattern === null) {
        return found;
    }
    switch (pattern.type) {
        case 'Identifier':
            found.push(pattern);
            break;
        case 'ObjectPattern':
            for (const property of pattern.properties) {
                targets(property.type === 'RestElement' ? property : property.value, found);
            }
            break;
        case 'ArrayPattern':
            for (const element of pattern.elements) {
                targets(element, found);
            }
            break;
        case 'AssignmentPattern':
            targets(pattern.left, found);
            break;
        case 'RestElement':
            targets(pattern.argument, found);
            break;
        // A member expression binds no name.
    }
    return found;
}

// {status, indent} as Jupyter has it; `check` throws CodeSyntaxError.
function completeness(source, check) {
    try {
        check(source);
        return { status: 'complete', indent: '' };
    } catch (error) {
        if (!(error instanceof CodeSyntaxError)) {
            throw error;
        }
        if (error.atEnd) {
            return { status: 'incomplete', indent: '  '.repeat(nesting(source).open) };
        }
        return { status: 'invalid', indent: '' };
    }
}

module.exports = { CodeSyntaxError, OPTIONS, TOO_DEEP, checkDepth, completeness, isFunction, parse, targets, upwards, walk };
