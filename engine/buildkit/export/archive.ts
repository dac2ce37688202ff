import { buildFolder } from '../../builder/context/context.ts';
import type { Engine } from '../../engine.ts';
import { textFile } from '../../images/archives/archive-parts.ts';
import { familiarReference, parseReference, withDefaultTag, type Reference } from '../../images/names/reference.ts';
import type { Image } from '../../images/store.ts';
import { TAR_END, tarHeader, tarPadding } from '../../layers/tar/tar-write.ts';
import { EngineError } from '../../lib/errors.ts';
import { OCI_INDEX } from '../../registry/manifests.ts';
import type { Built } from '../frontend/build.ts';
import { BytesMessage } from '../messages/session.ts';
import type { Vertex } from '../progress/vertex.ts';
import { ClientContent } from '../session/client-content.ts';
import type { Session } from '../session/session.ts';
import { annotationsOf } from './annotations.ts';
import { packImage, textBlob, type Blob, type PackedImage } from './packed-image.ts';
import { packingOf } from './packing.ts';
import { exporterHeader, FILE_SEND } from './tar.ts';

type To = Readonly<{ session: Session; index: number; signal: AbortSignal; vertex: Vertex }>;
type Attributes = ReadonlyMap<string, string>;
type Exported = ReadonlyMap<string, string>;

/** Messages of the client's side have a limit of their own. */
const PIECE_BYTES = 32 * 1024;
/** The client's name of a folder that takes a layout (`tar=false`). */
const STORE = 'export';
const EPOCH = new Temporal.Instant(0n);

/**
 * Sends images to the client as an OCI layout: the outputs `oci`, and `docker`, which has docker's list of images too. Several
 * platforms are behind an index of the layout.
 */
export async function exportArchive(
  engine: Engine,
  built: readonly Built[],
  { type, attributes }: Readonly<{ type: string; attributes: Attributes }>,
  { session, index, signal, vertex }: To,
): Promise<Exported> {
  const packing = packingOf(type, attributes);
  const names = namesIn(attributes);
  await using folder = await buildFolder(engine);
  using images = new DisposableStack();
  const packed: PackedImage[] = [];
  for (const { image } of built) packed.push(images.use(await packImage(engine, image, folder.path, packing, signal)));
  const descriptors = packed.map(({ manifest }, at) => described(manifest, built[at]!.image, attributes));
  vertex.status('exporting layers', 0, 0, true);
  for (const { manifest, config } of packed) {
    vertex.status(`exporting manifest ${manifest.descriptor.digest}`, 0, 0, true);
    vertex.status(`exporting config ${config.descriptor.digest}`, 0, 0, true);
  }
  const list = packed.length > 1 ? indexOf(descriptors, attributes) : undefined;
  if (list !== undefined) vertex.status(`exporting manifest list ${list.descriptor.digest}`, 0, 0, true);
  const top = list === undefined ? descriptors[0]! : { ...list.descriptor, annotations: createdAt(built[0]!.image) };
  const blobs = [
    ...packed.flatMap(({ layers, config, manifest }) => [...layers, config, manifest]),
    ...(list === undefined ? [] : [list]),
  ];
  if (attributes.get('tar') === 'false') {
    const content = new ClientContent(session, STORE, signal);
    for (const blob of distinct(blobs)) await content.write(blob);
  } else {
    const docker = type === 'docker' ? packed[0] : undefined;
    using exchange = session.exchange(FILE_SEND, BytesMessage, BytesMessage, signal, exporterHeader(index));
    for await (const piece of layoutOf(distinct(blobs), { descriptor: top, names, docker })) {
      for (let at = 0; at < piece.length; at += PIECE_BYTES)
        await exchange.send({ data: piece.subarray(at, at + PIECE_BYTES) });
    }
    vertex.status('sending tarball', 0, 0, true);
    exchange.end();
    await Array.fromAsync(exchange.responses);
  }
  return new Map([
    ['containerimage.digest', top.digest],
    ...(list === undefined ? [['containerimage.config.digest', packed[0]!.config.descriptor.digest] as const] : []),
    ['containerimage.descriptor', Buffer.from(JSON.stringify(top)).toString('base64')],
    ...(names.length > 0 ? [['image.name', names.map(wholeName).join(',')] as const] : []),
  ]);
}

/** Throws for options that this result cannot have. `builtCount`: its platforms. */
export function checkArchive(type: string, attributes: Attributes, builtCount: number): void {
  packingOf(type, attributes);
  if (type === 'docker' && builtCount > 1)
    throw new EngineError('invalid', 'docker exporter does not currently support exporting manifest lists');
  if (builtCount === 1 && [...attributes.keys()].some((name) => name.startsWith('annotation-index')))
    throw new EngineError('notImplemented', 'an image of one platform has no index to annotate');
}

type Described = Blob['descriptor'] & Readonly<{ annotations: object; platform?: object }>;

function described({ descriptor }: Blob, image: Image, attributes: Attributes): Described {
  const annotations = { ...annotationsOf(attributes, 'manifest-descriptor'), ...createdAt(image) };
  return { ...descriptor, annotations, platform: platformOf(image) };
}

function createdAt({ createdAt: time }: Image): object {
  return { 'org.opencontainers.image.created': (time ?? EPOCH).toString({ smallestUnit: 'second' }) };
}

function platformOf({ architecture, os, variant }: Image): object {
  return { architecture, os, ...(variant !== '' && { variant }) };
}

function indexOf(descriptors: readonly Described[], attributes: Attributes): Blob {
  const manifests = descriptors.map(({ annotations: _times, ...descriptor }) => descriptor);
  const annotations = annotationsOf(attributes, 'index');
  const own = Object.keys(annotations).length > 0 ? { annotations } : {};
  return textBlob(
    JSON.stringify({ schemaVersion: 2, mediaType: OCI_INDEX, manifests, ...own }, undefined, 2),
    OCI_INDEX,
  );
}

function distinct(blobs: readonly Blob[]): Blob[] {
  return [...new Map(blobs.map((blob) => [blob.descriptor.digest, blob])).values()];
}

function namesIn(attributes: Attributes): Reference[] {
  const names = (attributes.get('name') ?? '').split(',').filter(Boolean);
  return names.map((name) => withDefaultTag(parseReference(name)));
}

function wholeName({ repository, tag }: Reference): string {
  return `${repository}:${tag}`;
}

/** `docker`: the image that docker's own list names too. */
type Layout = Readonly<{ descriptor: object; names: readonly Reference[]; docker: PackedImage | undefined }>;

async function* layoutOf(blobs: readonly Blob[], { descriptor, names, docker }: Layout): AsyncGenerator<Uint8Array> {
  for (const blob of blobs) yield* blobFile(blob);
  const named = names.map((name) => withName(descriptor, name));
  const manifests = named.length > 0 ? named : [descriptor];
  yield* textFile('index.json', JSON.stringify({ schemaVersion: 2, mediaType: OCI_INDEX, manifests }));
  if (docker !== undefined) {
    const image = {
      Config: pathOf(docker.config),
      RepoTags: names.length > 0 ? names.map(familiarReference) : null,
      Layers: docker.layers.map(pathOf),
    };
    yield* textFile('manifest.json', JSON.stringify([image]));
  }
  yield* textFile('oci-layout', '{"imageLayoutVersion":"1.0.0"}');
  yield TAR_END;
}

function withName(descriptor: object, name: Reference): object {
  const { annotations } = descriptor as { annotations?: object };
  const own = { 'io.containerd.image.name': wholeName(name), 'org.opencontainers.image.ref.name': name.tag };
  return { ...descriptor, annotations: sorted({ ...annotations, ...own }) };
}

function sorted(annotations: object): object {
  return Object.fromEntries(Object.entries(annotations).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

async function* blobFile(blob: Blob): AsyncGenerator<Uint8Array> {
  const { size } = blob.descriptor;
  yield tarHeader({ name: pathOf(blob), type: 'file', sizeBytes: size, modifiedAt: EPOCH });
  yield* blob.read();
  yield tarPadding(size);
}

function pathOf({ descriptor: { digest } }: Blob): string {
  return `blobs/${digest.replace(':', '/')}`;
}
