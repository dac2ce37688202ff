import type { OpenView } from '../../copies/copies.ts';
import type { Engine } from '../../engine.ts';
import { newId } from '../../lib/ids.ts';

type Needs = Pick<Engine, 'copies' | 'layers'>;
type Root = AsyncDisposable & { path: string };

/** The root of an image with a writable layer on it, without a process. */
type ScratchRoot = AsyncDisposable &
  Readonly<{
    /** Id of the writable layer. */
    id: string;
    /** Its files, until that is disposed. */
    open: () => Promise<AsyncDisposable & { path: string; view: OpenView }>;
  }>;

/** Undefined: an empty root. Leftovers of a killed daemon have no container, so the next start removes them. */
export async function scratchRoot(engine: Needs, imageId: string | undefined): Promise<ScratchRoot> {
  const id = newId();
  await engine.layers.prepare(id, imageId);
  return {
    id,
    open: async () => {
      await using undo = new AsyncDisposableStack();
      const { path } = undo.use(await engine.layers.mountImageOnHost(id));
      const view = undo.use(await engine.copies.open({ root: path, mounts: [], readOnly: 'nothing' }));
      const parts = undo.move();
      return { path, view, [Symbol.asyncDispose]: async () => await parts.disposeAsync() };
    },
    [Symbol.asyncDispose]: async () => await engine.layers.remove(id),
  };
}

/** The files of an image alone, mounted for reading. */
export async function imageRoot(engine: Needs, imageId: string): Promise<Root> {
  return await mountedRoot(engine, imageId, async (id) => await engine.layers.mountImageOnHost(id));
}

/** The files that a container of an image would have at its start. */
export async function containerRoot(engine: Needs, imageId: string | undefined): Promise<Root> {
  return await mountedRoot(engine, imageId, async (id) => await engine.layers.mountOnHost(id));
}

async function mountedRoot(
  engine: Needs,
  imageId: string | undefined,
  mount: (id: string) => Promise<Root>,
): Promise<Root> {
  await using undo = new AsyncDisposableStack();
  const id = newId();
  await engine.layers.prepare(id, imageId);
  undo.defer(async () => await engine.layers.remove(id));
  const { path } = undo.use(await mount(id));
  const parts = undo.move();
  return { path, [Symbol.asyncDispose]: async () => await parts.disposeAsync() };
}
