import { open, rm, type FileHandle } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';

import { lineOf } from '../http/streams/stream.ts';
import type { Progress } from '../images/progress/progress.ts';
import { hasCode } from '../lib/errors.ts';
import type { Sink } from './output.ts';

const MAX_HELD_BYTES = 64 * 1024 * 1024;
const READ_BYTES = 128 * 1024;
const CLIPPED_PAUSE_MS = 10;
const CLIPPED = '[output clipped: it was too long to wait for the end of an earlier stage]\n';

/** The room of a build for lines that wait. */
export class HeldRoom {
  #left = MAX_HELD_BYTES;

  /** Returns whether there was room. */
  take(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  give(bytes: number): void {
    this.#left += bytes;
  }
}

/**
 * Lines of a stage that wait for the end of earlier ones, in a file. If they are too many, or the disk is full, the rest is
 * left out, and its process slowed down: one that stops could hold a folder that an earlier stage needs.
 */
export class HeldLines {
  readonly #path: string;
  readonly #room: HeldRoom;
  #file: FileHandle | undefined;
  /** Bytes of whole lines. */
  #bytes = 0;
  #isClipped = false;
  /** Reused, as new ones would be much garbage. */
  #buffer = Buffer.alloc(0);

  constructor(path: string, room: HeldRoom) {
    this.#path = path;
    this.#room = room;
  }

  async add(line: Progress): Promise<void> {
    if (this.#isClipped) {
      await setTimeout(CLIPPED_PAUSE_MS);
      return;
    }
    const text = lineOf(line);
    const length = Buffer.byteLength(text);
    this.#isClipped = !this.#room.take(length) || !(await this.#hasWritten(text, length));
  }

  /** Passes all lines so far on, and forgets them. */
  async passTo(sink: Sink): Promise<void> {
    await using file = this.#file;
    if (file !== undefined) {
      const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
      for (let position = 0; position < this.#bytes;) {
        const length = Math.min(READ_BYTES, this.#bytes - position);
        const { bytesRead } = await file.read(buffer, 0, length, position);
        await sink.pass(buffer.subarray(0, bytesRead));
        position += bytesRead;
      }
      await rm(this.#path);
    }
    if (this.#isClipped) sink.report({ stream: CLIPPED });
    this.#room.give(this.#bytes);
  }

  async #hasWritten(text: string, length: number): Promise<boolean> {
    if (this.#buffer.length < length) this.#buffer = Buffer.allocUnsafeSlow(length);
    this.#buffer.write(text);
    try {
      this.#file ??= await open(this.#path, 'wx+', 0o600);
      for (let done = 0; done < length;) {
        done += (await this.#file.write(this.#buffer, done, length - done, this.#bytes + done)).bytesWritten;
      }
    } catch (error) {
      if (hasCode(error, 'ENOSPC') || hasCode(error, 'EDQUOT')) return false;
      throw error;
    }
    this.#bytes += length;
    return true;
  }
}
