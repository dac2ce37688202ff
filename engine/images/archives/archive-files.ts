import { readFile } from 'node:fs/promises';

import type { Static, Type } from 'typebox';
import Schema from 'typebox/schema';

import { innerPath } from '../../layers/tar/entry-names.ts';
import { badArchive } from '../../layers/tar/tar-header.ts';
import type { Unpacked } from '../../layers/threads/archive-messages.ts';
import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';

const METADATA_BYTES = 8 * 1024 * 1024;
const LINKS = 16;

export type ArchiveFile = Extract<Unpacked, { kind: 'file' }>;

/** The members of an image archive by their names. */
export class ArchiveFiles {
  readonly #members: ReadonlyMap<string, Unpacked>;

  constructor(members: readonly Unpacked[]) {
    this.#members = new Map(members.map((member) => [member.path, member]));
  }

  names(): string[] {
    return [...this.#members.keys()];
  }

  has(path: string): boolean {
    return this.#members.has(path);
  }

  /** The file of this name, which may be written as `./a` or `/a`, through the archive's own links. */
  get(path: string): ArchiveFile {
    let member = this.#members.get(innerPath(path, 'the name'));
    for (let links = 0; member?.kind === 'link' && links < LINKS; links += 1) member = this.#members.get(member.target);
    if (member?.kind !== 'file') throw badArchive(`${JSON.stringify(path)} is missing`);
    return member;
  }

  /** A blob of an OCI layout; its digest must match its name. */
  blob(digest: string): ArchiveFile {
    const file = this.get(`blobs/${digest.replace(':', '/')}`);
    if (file.digest !== digest) throw badArchive(`the blob ${digest} has the digest ${file.digest}`);
    return file;
  }

  async text(file: ArchiveFile): Promise<string> {
    if (file.sizeBytes > METADATA_BYTES) {
      throw badArchive(`${JSON.stringify(file.path)} has ${file.sizeBytes} bytes; the limit is ${METADATA_BYTES}`);
    }
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await readFile(file.file));
    } catch (error) {
      if (error instanceof TypeError) throw badArchive(`${JSON.stringify(file.path)} is not UTF-8`, error);
      throw error;
    }
  }

  /** A JSON file of this shape. */
  async json<T extends Type.TSchema>(file: ArchiveFile, shape: T): Promise<Static<T>> {
    const value = parseJson(await this.text(file), file.path);
    const schema = Schema.Compile(shape);
    if (schema.Check(value)) return value;
    const [, errors] = schema.Errors(value);
    const { instancePath = '', message = '' } = errors[0] ?? {};
    throw badArchive(`${JSON.stringify(file.path)}: ${instancePath || 'it'} ${message}`);
  }
}

export function parseJson(text: string, path: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch (error) {
    const reason = error instanceof UnboundedJsonError ? `cannot be read: ${error.message}` : 'is not JSON';
    throw badArchive(`${JSON.stringify(path)} ${reason}`, error);
  }
}
