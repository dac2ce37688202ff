import { append } from '../lib/append.ts';
import { parseBoundedJson, UnboundedJsonError } from '../lib/bounded-json.ts';
import { discard, readBody } from './connection/read-body.ts';
import type { RegistrySession } from './connection/session.ts';
import { sha256 } from './digest.ts';
import { downloadBlob, type Transfer } from './download.ts';
import { isOfTokenServer, RegistryError } from './errors.ts';
import { ACCEPTED, MANIFEST_BYTES, parseManifest, type Artifact, type Descriptor, type Manifest } from './manifests.ts';

const CONFIG_BYTES = 8 * 1024 * 1024;
/** Size of one page; all pages together are limited by their number and by that of the tags. */
const MAX_TAGS_BYTES = 16 * 1024 * 1024;
const MAX_TAG_PAGES = 1000;
const MAX_TAGS = 100_000;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** A repository of a registry, for reading. */
export class Repository {
  readonly session: RegistrySession;
  /** Without the host: `library/busybox`. */
  readonly path: string;
  readonly scopes: readonly string[];

  constructor(session: RegistrySession, path: string) {
    this.session = session;
    this.path = path;
    this.scopes = [`repository:${path}:pull`];
  }

  address(rest: string): URL {
    return this.session.address(`/v2/${this.path}/${rest}`);
  }

  /** The present digest of a tag; undefined if the registry does not tell it. Costs no download. */
  async digestOf(tag: string, signal: AbortSignal): Promise<string | undefined> {
    const ask = { method: 'HEAD', headers: { accept: ACCEPTED }, scopes: this.scopes, signal } as const;
    try {
      const answer = await this.session.ask(this.address(`manifests/${tag}`), ask);
      await discard(answer);
      const digest = answer.headers['docker-content-digest'];
      return typeof digest === 'string' && DIGEST.test(digest) ? digest : undefined;
    } catch (error) {
      // A refusal of HEAD has no body: the download reports the reason.
      if (error instanceof RegistryError && error.status >= 400 && error.status < 429 && !isOfTokenServer(error))
        return undefined;
      throw error;
    }
  }

  /** By tag or digest; a digest is checked. */
  async manifest(reference: string, signal: AbortSignal, wanted: Artifact = 'image'): Promise<Manifest> {
    return (await this.describedManifest(reference, signal, wanted)).manifest;
  }

  /** Like `manifest`, with the type and the size that a registry has it under. */
  async describedManifest(
    reference: string,
    signal: AbortSignal,
    wanted: Artifact = 'image',
  ): Promise<{ manifest: Manifest; mediaType: string; size: number }> {
    const answer = await this.session.ask(this.address(`manifests/${reference}`), {
      method: 'GET',
      headers: { accept: ACCEPTED },
      scopes: this.scopes,
      signal,
    });
    const bytes = await readBody(answer, MANIFEST_BYTES, 'the manifest');
    const [contentType = ''] = (answer.headers['content-type'] ?? '').split(';');
    const expected = reference.startsWith('sha256:') ? reference : undefined;
    const mediaType = contentType.trim();
    return { manifest: parseManifest(bytes, mediaType, { expected, wanted }), mediaType, size: bytes.length };
  }

  /** The size of a blob in bytes, for manifests that do not tell it. */
  async sizeOf(digest: string, signal: AbortSignal): Promise<number> {
    const answer = await this.session.ask(this.address(`blobs/${digest}`), {
      method: 'HEAD',
      headers: { 'accept-encoding': 'identity' },
      scopes: this.scopes,
      signal,
    });
    await discard(answer);
    const stated = answer.headers['content-length'] ?? '';
    if (!/^\d{1,15}$/.test(stated)) throw new RegistryError(`the registry does not tell the size of layer ${digest}`);
    return Number(stated);
  }

  /** An image's configuration, byte for byte. */
  async config({ digest, size }: Descriptor, signal: AbortSignal): Promise<string> {
    if (size > CONFIG_BYTES) {
      throw new RegistryError(`the image configuration has ${size} bytes; the limit is ${CONFIG_BYTES}`);
    }
    const answer = await this.session.ask(this.address(`blobs/${digest}`), {
      method: 'GET',
      scopes: this.scopes,
      signal,
    });
    const bytes = await readBody(answer, size, 'the image configuration');
    if (bytes.length !== size || sha256(bytes) !== digest) {
      throw new RegistryError(`image config verification failed for digest ${digest}`);
    }
    return bytes.toString();
  }

  /** The bytes of a layer, unchecked. */
  layer(descriptor: Descriptor, transfer: Transfer): AsyncGenerator<Uint8Array> {
    return downloadBlob(this, descriptor, transfer);
  }

  /** All tags, in the registry's order. Throws for a list above the limits. */
  async tags(signal: AbortSignal): Promise<string[]> {
    const tags: string[] = [];
    let next: URL | undefined = this.address('tags/list');
    for (let page = 1; next !== undefined; page += 1) {
      if (page > MAX_TAG_PAGES) throw tooManyTags(`${MAX_TAG_PAGES} pages`);
      const answer = await this.session.ask(next, { method: 'GET', scopes: this.scopes, signal });
      const body = await readBody(answer, MAX_TAGS_BYTES, 'the list of tags');
      const link = /<([^>]+)>\s*;\s*rel="?next"?/.exec(answer.headers.link ?? '')?.[1];
      append(tags, tagsIn(body));
      if (tags.length > MAX_TAGS) throw tooManyTags(`${MAX_TAGS} tags`);
      next = link !== undefined && URL.canParse(link, next) ? new URL(link, next) : undefined;
    }
    return tags;
  }
}

function tagsIn(body: Buffer): string[] {
  try {
    const { tags } = parseBoundedJson(body.toString(), { maxValues: MAX_TAGS + 10 }) as { tags?: unknown };
    if (Array.isArray(tags)) return tags.filter((tag) => typeof tag === 'string');
    if (tags === null || tags === undefined) return [];
  } catch (error) {
    if (error instanceof UnboundedJsonError) throw new RegistryError(`invalid list of tags: ${error.message}`);
  }
  throw new RegistryError('the registry answers with an invalid list of tags');
}

function tooManyTags(limit: string): RegistryError {
  return new RegistryError(`the repository has more than ${limit}: pull its tags one by one`);
}
