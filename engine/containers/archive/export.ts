import type { TakeChunk } from '../../copies/copies.ts';
import type { Events } from '../../events/events.ts';
import { emitIfThere } from '../container-events.ts';
import { openFiles, type FilesNeeds } from './files.ts';
import { sendFiles } from './read.ts';

/** A container's root that is about to be sent. */
type OpenExport = AsyncDisposable &
  Readonly<{
    /** Throws when `signal` is aborted, the container is removed, or a file cannot be read. */
    send: (take: TakeChunk, signal: AbortSignal) => Promise<void>;
  }>;

/** The root of a container as an archive, without what is mounted in it. Specification, endpoint 7. */
export async function openExport(engine: FilesNeeds & { events: Events }, ref: string): Promise<OpenExport> {
  const files = await openFiles(engine, ref, { readOnly: 'everything', withMounts: false });
  return {
    send: async (take, signal) => {
      await sendFiles(files, undefined, take, signal);
      emitIfThere(engine, 'export', files.container.id);
    },
    [Symbol.asyncDispose]: async () => await files[Symbol.asyncDispose](),
  };
}
