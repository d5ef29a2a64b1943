// SPDX-License-Identifier: Apache-2.0
//
// The one answer of an execution, with what a caller usually wants of it.

import { ExecutionFailed } from './errors.js';
import type { Artifact, Execution, ExecutionError, MimeBundle } from './schema.js';

const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/svg+xml'];

/** A picture that the code showed. */
export interface Image {
    mediaType: string;
    bytes: Uint8Array;
}

function textOf(value: unknown): string {
    return typeof value === 'string' ? value : Array.isArray(value) ? value.join('') : '';
}

/** The picture in a bundle of data by media type, if there is one. */
export function imageOf(bundle: MimeBundle | null | undefined): Image | undefined {
    const data = (bundle ?? {}) as Record<string, unknown>;
    for (const mediaType of IMAGE_TYPES) {
        if (mediaType in data) {
            const text = textOf(data[mediaType]);
            const bytes =
                mediaType === 'image/svg+xml'
                    ? new TextEncoder().encode(text)
                    : Uint8Array.from(atob(text.replace(/\s/g, '')), (char) => char.charCodeAt(0));
            return { mediaType, bytes };
        }
    }
    return undefined;
}

export class Result {
    /** `raw` is the answer as the server sent it. */
    constructor(readonly raw: Execution) {}

    get id(): string {
        return this.raw.id;
    }
    get status(): Execution['status'] {
        return this.raw.status;
    }
    get ok(): boolean {
        return this.raw.status === 'ok';
    }
    get stdout(): string {
        return this.raw.stdout;
    }
    get stderr(): string {
        return this.raw.stderr;
    }
    get error(): ExecutionError | null {
        return this.raw.error;
    }
    /** Files that the code made or changed. */
    get artifacts(): Artifact[] {
        return this.raw.artifacts ?? [];
    }

    /** What was printed, then the value of the last expression as text. */
    get text(): string {
        const value = textOf((this.raw.result as Record<string, unknown> | null)?.['text/plain']);
        const gap = value && this.stdout && !this.stdout.endsWith('\n') ? '\n' : '';
        return this.stdout + gap + value;
    }

    /** The last value as HTML (a table, for a data frame), if it has one. */
    get html(): string | undefined {
        return textOf((this.raw.result as Record<string, unknown> | null)?.['text/html']) || undefined;
    }

    /** Every picture shown, in order. */
    get images(): Image[] {
        const bundles = [...this.raw.displays.map((display) => display.data), this.raw.result];
        return bundles.map(imageOf).filter((image) => image !== undefined);
    }

    /** Returns itself if the code ended well; otherwise throws `ExecutionFailed`. */
    orThrow(): this {
        if (!this.ok) {
            throw new ExecutionFailed(this);
        }
        return this;
    }
}
