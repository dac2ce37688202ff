import { Type, type Static } from 'typebox';

import type { Engine } from '../../engine.ts';
import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';
import { EngineError } from '../../lib/errors.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import type { Platform } from '../configuration/platform.ts';
import type { Image } from '../store.ts';
import { attestedBy } from './attestation.ts';
import type { ImageDocument } from './documents.ts';

type Needs = Pick<Engine, 'images'>;
type Wanted = Readonly<{
  platform: Platform | undefined;
  /** Predicate types; empty: all. */
  types: readonly string[];
  withContent: boolean;
}>;

const PREDICATE_TYPE = 'in-toto.io/predicate-type';

const Layer = Type.Object({
  mediaType: Type.String(),
  digest: Type.String(),
  size: Type.Integer(),
  annotations: Type.Optional(Type.Record(Type.String(), Type.String())),
});
const attestationManifest = lazyCheck(Type.Object({ layers: Type.Array(Layer) }));

/** A statement about an image in the notation in-toto; the content only where the caller wants it. */
export type Statement = Readonly<{ layer: Static<typeof Layer>; predicateType: string; content?: unknown }>;

/**
 * Lists the statements that attest to an image; none for an image without an attestation.
 *
 * Throws `notFound` if the index lists an attestation that is not here: pulls leave them out, archives may have them.
 */
export function imageStatements({ images }: Needs, ref: string, { platform, types, withContent }: Wanted): Statement[] {
  const image = images.find(ref, platform);
  const attestation = attestationOf(images, image, images.targetOf(ref, image));
  if (attestation === undefined) return [];
  const statements: Statement[] = [];
  for (const layer of layersOf(attestation)) {
    const predicateType = layer.annotations?.[PREDICATE_TYPE];
    if (predicateType === undefined || (types.length > 0 && !types.includes(predicateType))) continue;
    const content = withContent ? { content: contentOf(images, layer.digest) } : {};
    statements.push({ layer, predicateType, ...content });
  }
  return statements;
}

function attestationOf(images: Needs['images'], image: Image, target = ''): ImageDocument | undefined {
  const { documents } = images;
  const subjects = new Set(documents.ofImage(image.id).map(({ digest }) => digest));
  const entry = documents.manifestsBelow(target).find((each) => subjects.has(attestedBy(each) ?? ''));
  return entry && (documents.get(entry.digest) ?? missing(entry.digest));
}

function layersOf({ text }: ImageDocument): readonly Static<typeof Layer>[] {
  const manifest = parseBoundedJson(text);
  return attestationManifest.Check(manifest) ? manifest.layers : [];
}

function contentOf({ documents }: Needs['images'], digest: string): unknown {
  const { text } = documents.get(digest) ?? missing(digest);
  try {
    return parseBoundedJson(text);
  } catch (error) {
    if (!(error instanceof UnboundedJsonError || error instanceof SyntaxError)) throw error;
    throw new EngineError('invalid', `the statement ${digest} cannot be shown: ${error.message}`);
  }
}

function missing(digest: string): never {
  throw new EngineError('notFound', `the attestation ${digest} is not here: pulls leave attestations out`);
}
