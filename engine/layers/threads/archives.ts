import type { IdMap } from '../../host/users/id-map.ts';
import type { Background } from '../../lib/concurrency/background.ts';
import { DEFAULT_LIMITS, type ArchiveLimits } from '../tar/tar-reader.ts';
import type {
  ArchiveSource,
  ContextEntry,
  Extracted,
  LayerCompression,
  Received,
  Results,
  Unpacked,
  Work,
} from './archive-messages.ts';
import { ArchiveThread, type Given } from './archive-thread.ts';

const THREADS = 2;

type Options = { limits?: ArchiveLimits; idMap?: IdMap | undefined };

/** Reads and writes archives in worker threads; the event loop only passes bytes on. A `signal` ends the work in the middle. */
export class Archives implements AsyncDisposable {
  readonly limits: ArchiveLimits;
  readonly #background: Background;
  readonly #idMap: IdMap | undefined;
  readonly #threads: ArchiveThread[] = [];

  /** `idMap`: layers with other owners are refused. */
  constructor(background: Background, { limits = DEFAULT_LIMITS, idMap }: Options = {}) {
    this.#idMap = idMap;
    this.#background = background;
    this.limits = limits;
  }

  /** Writes a stream unchanged into a new file, and returns its digest. */
  async receive(stream: AsyncIterable<Uint8Array>, file: string, signal?: AbortSignal): Promise<Received> {
    return (await this.#perform({ kind: 'receive', file, limits: this.limits }, stream, { signal })) as Received;
  }

  /** Unpacks an archive, compressed or not, into files in `directory`. */
  async unpack(stream: AsyncIterable<Uint8Array>, directory: string, signal?: AbortSignal): Promise<Unpacked[]> {
    return (await this.#perform({ kind: 'unpack', directory, limits: this.limits }, stream, { signal })) as Unpacked[];
  }

  /**
   * Extracts a layer's archive, an open file with this digest, compressed or not, into the empty folder `target`.
   * `lower` are the folders of the layers below, topmost first, which may not be there before the end; `skeleton` is a new
   * file, which has the result if it says so. `onProgress` gets the number of bytes read from the file.
   */
  async extract(
    { fd, digest }: { fd: number; digest: string },
    { target, lower, skeleton }: { target: string; lower: () => Promise<readonly string[]>; skeleton: string },
    onProgress: (bytes: number) => void = () => undefined,
    signal?: AbortSignal,
  ): Promise<Extracted> {
    const work: Work = {
      kind: 'extract',
      fd,
      digest,
      target,
      skeleton,
      limits: { ...this.limits, idMap: this.#idMap },
    };
    return (await this.#perform(work, told(lower), { onProgress, signal })) as Extracted;
  }

  /**
   * Writes the context of a build, compressed or not, as a plain archive into a new file, or `behind` so many bytes of an
   * existing one; `onEntries` gets its entries.
   */
  async spoolContext(
    stream: AsyncIterable<Uint8Array>,
    { file, behind = 0 }: Readonly<{ file: string; behind?: number }>,
    onEntries: (entries: readonly ContextEntry[]) => void,
    signal?: AbortSignal,
  ): Promise<void> {
    await this.#perform({ kind: 'spoolContext', file, behind, limits: this.limits }, stream, { onEntries, signal });
  }

  /** Extracts such a file into an empty folder, but the entries whose bits are set in `without`. */
  async extractContext(
    file: string,
    directory: string,
    { without, signal }: { without?: Uint8Array<ArrayBuffer> | undefined; signal?: AbortSignal } = {},
  ): Promise<void> {
    const work: Work = { kind: 'extractContext', file, directory, without, limits: this.limits };
    await this.#perform(work, undefined, { signal });
  }

  /**
   * Writes the changes of a writable layer against the folders below, topmost first, as an archive into a new file.
   * `mountPoints`: mount points besides the usual ones; `none` for a layer without runs.
   */
  async packLayer(
    upper: string,
    lower: readonly string[],
    file: string,
    mountPoints: readonly string[] | 'none' = [],
    signal?: AbortSignal,
  ): Promise<Received> {
    const work: Work = { kind: 'packLayer', upper, lower, file, mountPoints };
    return (await this.#perform(work, undefined, { signal })) as Received;
  }

  /**
   * Describes the changes of a writable layer without runs, whose folder may become that of a layer. `skeleton` is a new file,
   * which has the result if it says so; otherwise the layer has to be packed and extracted.
   */
  async describeLayer(upper: string, skeleton: string, signal?: AbortSignal): Promise<Extracted> {
    const limits = { ...this.limits, idMap: this.#idMap };
    return (await this.#perform({ kind: 'describeLayer', upper, skeleton, limits }, undefined, {
      signal,
    })) as Extracted;
  }

  /**
   * Writes the compressed archive of a layer into a new file. `onProgress` gets the size of the file as it grows; that part of it
   * may be read.
   */
  async compress(
    source: ArchiveSource,
    file: string,
    onProgress: (bytes: number) => void,
    compression: LayerCompression = { kind: 'gzip' },
  ): Promise<Received> {
    return (await this.#perform({ kind: 'compress', source, file, compression }, undefined, {
      onProgress,
    })) as Received;
  }

  /**
   * The plain archive of a layer, in chunks each of which is valid until the next one is asked for. Throws at its end when the
   * files of a rebuilt one were changed.
   */
  read(source: ArchiveSource): AsyncGenerator<Buffer> {
    return this.#leastBusy().read(source);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#threads.splice(0).map(async (thread) => await thread.terminate()));
  }

  async #perform(work: Work, stream?: AsyncIterable<Uint8Array>, given: Given = {}): Promise<Results[Work['kind']]> {
    return await this.#leastBusy().perform(work, stream, given);
  }

  #leastBusy(): ArchiveThread {
    const [idlest] = this.#threads.toSorted((a, b) => a.load - b.load);
    if (idlest !== undefined && (idlest.load === 0 || this.#threads.length >= THREADS)) return idlest;
    const thread = new ArchiveThread(this.#background, () => {
      const at = this.#threads.indexOf(thread);
      if (at >= 0) this.#threads.splice(at, 1);
    });
    this.#threads.push(thread);
    return thread;
  }
}

/** As the stream of an extraction. */
async function* told(lower: () => Promise<readonly string[]>): AsyncGenerator<Buffer> {
  yield Buffer.from(JSON.stringify(await lower()));
}
