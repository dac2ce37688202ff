import type { CredentialsByHost } from '../../builder/options.ts';
import type { Engine } from '../../engine.ts';
import type { Built } from '../frontend/build.ts';
import { Vertex } from '../progress/vertex.ts';
import type { Session } from '../session/session.ts';
import type { Solve } from '../solve.ts';
import { GrpcError, StatusCode } from '../wire/status.ts';
import { checkArchive, exportArchive } from './archive.ts';
import { exportImage } from './image.ts';
import { exportLocal } from './local.ts';
import { packingOf } from './packing.ts';
import { exportTar } from './tar.ts';
import { treesOf } from './trees.ts';

/** An output of a build, and its options. */
export type Exporter = Readonly<{ type: string; attributes: ReadonlyMap<string, string> }>;

const IMAGES: ReadonlySet<string> = new Set(['moby', 'image']);
const NAMES: Readonly<Record<string, string>> = {
  moby: 'exporting to image',
  image: 'exporting to image',
  oci: 'exporting to oci image format',
  docker: 'exporting to docker image format',
  local: 'exporting to client directory',
  tar: 'exporting to client tarball',
};

/** Throws for outputs that we do not have, before the build. */
export function checkExporters(exporters: readonly Exporter[]): void {
  for (const { type, attributes } of exporters) {
    if (!Object.hasOwn(NAMES, type))
      throw unknown(`the output ${JSON.stringify(type)}`, 'image, oci, docker, local or tar');
    if (type === 'oci' || type === 'docker') packingOf(type, attributes);
    if (attributes.get('rewrite-timestamp') === 'true') throw unknown('rewrite-timestamp', 'SOURCE_DATE_EPOCH alone');
    if (attributes.get('push-by-digest') === 'true') throw unknown('a push without a tag', 'push=true with a name');
  }
}

/** Sends or stores the result of a build in all wanted forms; returns the values for the client's metadata. */
export async function exportResult(
  engine: Engine,
  built: readonly Built[],
  exporters: readonly Exporter[],
  {
    build,
    sessionOf,
    credentials,
  }: Readonly<{ build: Solve; sessionOf: () => Promise<Session>; credentials: CredentialsByHost }>,
): Promise<ReadonlyMap<string, string>> {
  const exported = new Map<string, string>();
  const signal = build.over;
  for (const [index, exporter] of exporters.entries()) {
    const { type, attributes } = exporter;
    const vertex = new Vertex(build.queue, engine.clock, NAMES[type]!);
    const values = await vertex.run(async () => {
      if (IMAGES.has(type)) return await exportImage(engine, built, attributes, { credentials, vertex, signal });
      const to = { session: await sessionOf(), index, signal, vertex };
      if (type === 'oci' || type === 'docker') {
        checkArchive(type, attributes, built.length);
        return await exportArchive(engine, built, exporter, to);
      }
      const trees = treesOf(built, attributes);
      await (type === 'tar' ? exportTar(engine, trees, to) : exportLocal(engine, trees, to));
      return new Map<string, string>();
    });
    for (const [key, value] of values) exported.set(key, value);
  }
  return exported;
}

function unknown(subject: string, instead: string): GrpcError {
  return new GrpcError(StatusCode.UNIMPLEMENTED, `${subject} is not implemented: use ${instead}`);
}
