// SPDX-License-Identifier: Apache-2.0
//
// Makes of a cell a script whose top-level names live on in the next cells.
//
// Every name that a cell declares at its top is declared once for the session, as a `let` of the
// global scope, by a script of its own (`declare`). The cell itself becomes a function, in which its
// declarations are assignments:
//
//     const a = f(1); class B {}      (($cell) => { f = function(x) { return a + x };
//     function f(x) { return a + x }    void (a = f(1)); B = class B {}; })($cellkeep.cell)
//
// So a name may be declared again, as anything, and functions of earlier cells see its new value.
// Assignments to a `const` go through $cellkeep.constants, whose setters refuse. Functions come first,
// then imports, as the language has it; everything else stays where it is.
'use strict';

const { Edits } = require('./positions');
const { crossesFunction, isScope, ownNames } = require('./scopes');
const { CodeSyntaxError, isFunction, parse, targets, upwards, walk } = require('./syntax');

const HOST = '$cellkeep';
const CELL = '$cell';
// Not declared here: the language forbids it, and its own message says so best.
const RESERVED = new Set(['undefined', 'NaN', 'Infinity', HOST, CELL]);

class Cell {
    // compiled: another compiler wrote it, which may end it with declarations of its own.
    constructor(source, known, compiled) {
        this.source = source;
        this.compiled = compiled;
        this.known = known; // name → kind, of the cells before
        this.kinds = new Map();
        this.edits = new Edits(source);
        this.guards = new Set();
        this.awaits = false;
        this.program = parse(source);
        this.scopeNames = new Map();
    }

    prepare() {
        const body = this.program.body;
        if (this.source.startsWith('#!')) {
            this.edits.replace(0, 2, '//');
        }
        const last = this.#last(body);
        const directives = body.filter((node) => node.directive !== undefined && node !== last);
        for (const node of body) {
            this.#statement(node);
        }
        this.#vars();
        this.#result(last);
        this.#inside();
        const strict = directives.map((node) => node.raw ?? node.expression.raw).join(';');
        const wrapper = this.awaits ? `(async (${CELL}) => {` : `((${CELL}) => {`;
        const suffix = `\n})(${HOST}.cell)`;
        const { code, segments } = this.edits.finish(wrapper + (strict && strict + ';'), suffix);
        return {
            code,
            segments,
            suffix: code.length - suffix.length,
            awaits: this.awaits,
            declare: [...this.kinds.keys()].filter((name) => !this.known.has(name)),
            kinds: [...this.kinds],
            guards: [...this.guards],
        };
    }

    #last(body) {
        const isEmpty = (node) => node.type === 'VariableDeclaration' && node.declarations.every((one) => !one.init);
        let at = body.length - 1;
        while (this.compiled && at >= 0 && isEmpty(body[at])) {
            at--;
        }
        return body[at];
    }

    #declare(identifier, kind) {
        if (RESERVED.has(identifier.name)) {
            const message = `'${identifier.name}' cannot be declared`;
            throw new CodeSyntaxError(message, identifier.start, false);
        }
        this.kinds.set(identifier.name, kind);
    }

    #statement(node) {
        switch (node.type) {
            case 'VariableDeclaration':
                if (node.kind === 'let' || node.kind === 'const') {
                    this.#variables(node, node.kind);
                }
                break;
            case 'FunctionDeclaration':
                this.#function(node);
                break;
            case 'ClassDeclaration':
                this.#declare(node.id, 'class');
                this.edits.insert(node.start, `${node.id.name} = `);
                this.edits.close(node.start, node.end, ';');
                break;
            case 'ImportDeclaration':
                this.#import(node);
                break;
            case 'ExportNamedDeclaration':
            case 'ExportDefaultDeclaration':
            case 'ExportAllDeclaration':
                this.#export(node);
                break;
        }
    }

    // `let a = 1, {b} = c;` becomes `void (a = 1, {b} = c);`: `void` because, unlike a bracket, it
    // never continues the line before.
    #variables(node, kind) {
        for (const one of node.declarations) {
            targets(one.id).forEach((id) => this.#declare(id, kind));
            if (one.init === null && kind !== 'var') {
                this.edits.close(one.start, one.end, ' = void 0');
            }
        }
        this.edits.replace(node.start, node.declarations[0].start, 'void (');
        const closed = this.source[node.end - 1] === ';';
        this.edits.close(node.start, closed ? node.end - 1 : node.end, closed ? ')' : ');');
    }

    // `var` belongs to the cell's top from wherever it stands, unless in a function.
    #vars() {
        walk(this.program, (node, up) => {
            if (node.type !== 'VariableDeclaration' || node.kind !== 'var' || crossesFunction(up)) {
                return;
            }
            const parent = up[0];
            if (parent.type.startsWith('For') && parent.body !== node) {
                node.declarations.forEach((one) =>
                    targets(one.id).forEach((id) => this.#declare(id, 'var')),
                );
                this.edits.replace(node.start, node.declarations[0].start, '');
            } else {
                this.#variables(node, 'var');
            }
        });
    }

    #function(node) {
        this.#declare(node.id, 'function');
        this.edits.move(node.start, node.end, `${node.id.name} = `, '; ');
        this.edits.replace(node.id.start, node.id.end, '');
    }

    #import(node) {
        const wanted = [];
        let whole = '';
        for (const one of node.specifiers) {
            this.#declare(one.local, 'const');
            if (one.type === 'ImportNamespaceSpecifier') {
                whole = one.local.name;
            } else {
                const imported = one.imported ?? { name: 'default' };
                wanted.push([imported.name ?? imported.value, one.local.name]);
            }
        }
        const options = (node.attributes ?? []).map((one) => [one.key.name ?? one.key.value, one.value.value]);
        this.awaits = true;
        const exported = wanted.map(([name]) => name);
        const list = `${JSON.stringify(exported)}, ${JSON.stringify(Object.fromEntries(options))}`;
        const names = wanted.map(([, local], index) => `${local} = $m[${index + 1}]; `).join('');
        const all = whole && `${whole} = $m[0]; `;
        // Moved with its text, so that an error of the import is found at the module's name.
        this.edits.move(
            node.source.start,
            node.source.end,
            `{ const $m = await ${HOST}.load(`,
            `, ${list}); ${all}${names}} `,
        );
        this.edits.replace(node.start, node.source.start, '');
        this.edits.replace(node.source.end, node.end, ';');
    }

    // An export becomes a declaration: no module imports from a cell.
    #export(node) {
        const inner = node.declaration;
        if (node.type === 'ExportAllDeclaration' || (node.source ?? null) !== null) {
            throw new CodeSyntaxError('A cell cannot export from a module', node.start, false);
        }
        if (!inner) {
            this.edits.replace(node.start, node.end, ';');
            return;
        }
        if (inner.type.endsWith('Declaration') && (inner.id !== null || inner.type === 'VariableDeclaration')) {
            this.edits.replace(node.start, inner.start, '');
            this.#statement(inner);
        } else {
            this.edits.replace(node.start, inner.start, 'void (');
            const closed = this.source[node.end - 1] === ';';
            this.edits.close(node.start, closed ? node.end - 1 : node.end, closed ? ')' : ');');
        }
    }

    // The value of the last statement, if it is an expression, is the cell's.
    #result(last) {
        if (last?.type === 'ExpressionStatement') {
            this.edits.insert(last.start, 'return (');
            const closed = this.source[last.end - 1] === ';';
            this.edits.close(last.start, closed ? last.end - 1 : last.end, '\n)');
        }
    }

    // Everything that is rewritten wherever it stands.
    #inside() {
        walk(this.program, (node, up) => {
            switch (node.type) {
                case 'ImportExpression':
                    this.edits.replace(node.start, node.start + 'import'.length, `${HOST}.import`);
                    break;
                case 'MetaProperty':
                    if (node.meta.name === 'import') {
                        this.edits.replace(node.start, node.end, `${HOST}.meta`);
                    }
                    break;
                case 'ImportDeclaration':
                case 'ExportNamedDeclaration':
                    if (up[0] !== this.program) {
                        const what = node.type.slice(0, 6).toLowerCase();
                        throw new CodeSyntaxError(
                            `'${what}' is only allowed at the top of a cell`, node.start, false);
                    }
                    break;
                case 'AwaitExpression':
                    this.#await(node, up);
                    break;
                case 'ForOfStatement':
                    if (node.await) {
                        this.awaits ||= !crossesFunction(up);
                        if (node.body.type === 'BlockStatement') {
                            this.edits.insert(node.body.start + 1, `${CELL}.go();`);
                        }
                    }
                    break;
                case 'AssignmentExpression':
                    this.#assigned(targets(node.left), up, node);
                    break;
                case 'UpdateExpression':
                    this.#assigned(targets(node.argument), up, node);
                    break;
            }
            if (isFunction(node) && node.async) {
                this.#asyncFunction(node);
            }
            if (/^For(In|Of)/.test(node.type) && node.left.type !== 'VariableDeclaration') {
                this.#assigned(targets(node.left), up, node);
            }
        });
    }

    // An await at the cell's top ends when the cell is interrupted. One in a function is let go on
    // until it is over, and then goes no further if the cell that called the function was.
    #await(node, up) {
        const { start, end } = node.argument;
        if (crossesFunction(up)) {
            this.edits.insert(node.start, `${CELL}.go(`);
            this.edits.close(node.start, node.end, ')');
        } else {
            this.awaits = true;
            this.edits.insert(start, `${CELL}.wait((`);
            this.edits.close(start, end, '))');
        }
    }

    #asyncFunction(node) {
        const body = node.body;
        const token = `const ${CELL} = ${HOST}.cell;`;
        if (body.type === 'BlockStatement') {
            const directives = body.body.filter((one) => one.directive !== undefined);
            const at = directives.length ? directives[directives.length - 1].end : body.start + 1;
            this.edits.insert(at, directives.length ? `; ${token}` : token);
        } else {
            const brackets = this.#bracketsAround(node, body);
            this.edits.insert(brackets.start, `{ ${token} return (`);
            this.edits.close(node.start, brackets.end, '\n) }');
        }
    }

    // An arrow function's body with the brackets it stands in, which the tree does not have.
    #bracketsAround(node, body) {
        const before = this.source.slice(0, body.start);
        const start = before.lastIndexOf('=>') + 2;
        return { start, end: node.end };
    }

    #kind(name) {
        return this.kinds.get(name) ?? this.known.get(name);
    }

    #assigned(identifiers, up, node) {
        for (const identifier of identifiers) {
            if (this.#kind(identifier.name) !== 'const' || this.#isLocal(identifier.name, [node, up])) {
                continue;
            }
            this.guards.add(identifier.name);
            const guarded = `${HOST}.constants.${identifier.name}`;
            const shorthand = this.shorthands.has(identifier);
            this.edits.replace(
                identifier.start, identifier.end, shorthand ? `${identifier.name}: ${guarded}` : guarded);
        }
    }

    // The identifiers of `{a}` and `{a = 1}` patterns, which stand for a property's name too.
    get shorthands() {
        if (this.shorthandSet === undefined) {
            this.shorthandSet = new Set();
            walk(this.program, (node) => {
                if (node.type === 'Property' && node.shorthand) {
                    targets(node.value).forEach((id) => this.shorthandSet.add(id));
                }
            });
        }
        return this.shorthandSet;
    }

    #isLocal(name, link) {
        for (const node of upwards(link)) {
            if (!isScope(node)) {
                continue;
            }
            if (!this.scopeNames.has(node)) {
                this.scopeNames.set(node, ownNames(node));
            }
            if (this.scopeNames.get(node).has(name)) {
                return true;
            }
        }
        return false;
    }
}

// The names of the session and their kinds; makes scripts of cells.
class Compiler {
    constructor() {
        this.known = new Map();
    }

    // Throws CodeSyntaxError. The cell's names count as declared from here on.
    prepare(source, compiled = false) {
        const prepared = new Cell(source, this.known, compiled).prepare();
        for (const [name, kind] of prepared.kinds) {
            this.known.set(name, kind);
        }
        return prepared;
    }

    // Declaring them has failed.
    forget(names) {
        names.forEach((name) => this.known.delete(name));
    }
}

module.exports = { Compiler, HOST };
