import { Type } from 'typebox';

import { parseBoundedJson, UnboundedJsonError } from '../lib/bounded-json.ts';
import { lazyCheck } from '../lib/lazy-check.ts';
import { RegistryError } from './errors.ts';

export const OLD_SIGNED_MANIFEST = 'application/vnd.docker.distribution.manifest.v1+prettyjws';
export const OLD_MANIFEST = 'application/vnd.docker.distribution.manifest.v1+json';

/** One step of an image's history, and what it left. */
export type OldLayer = Readonly<{
  /** The digest of its archive; that of an empty one where it `isEmpty`. */
  blob: string;
  /** The settings of the image up to here, as JSON. */
  json: string;
  isEmpty: boolean;
}>;

/** A manifest of schema 1: no configuration, but settings for each layer. Base first. */
export type OldManifest = Readonly<{ steps: readonly OldLayer[] }>;

const Manifest = lazyCheck(
  Type.Object({
    schemaVersion: Type.Literal(1),
    fsLayers: Type.Array(Type.Object({ blobSum: Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }) }), {
      minItems: 1,
      maxItems: 1000,
    }),
    history: Type.Array(Type.Object({ v1Compatibility: Type.String() }), { maxItems: 1000 }),
  }),
);
const Settings = lazyCheck(
  Type.Object({
    id: Type.String(),
    parent: Type.Optional(Type.String()),
    throwaway: Type.Optional(Type.Boolean()),
  }),
);
const Signatures = lazyCheck(
  Type.Object({ signatures: Type.Array(Type.Object({ protected: Type.String() }), { minItems: 1 }) }),
);
const Protected = lazyCheck(Type.Object({ formatLength: Type.Integer({ minimum: 0 }), formatTail: Type.String() }));

/**
 * The signed text, from which the digest is made: the text up to the stated length, and the end in the signatures.
 * The owner of the keys does not count, as manifests bring their keys along too.
 */
export function signedPart(bytes: Buffer): Buffer {
  const outer = parsePayload(bytes.toString());
  if (!Signatures.Check(outer)) throw new RegistryError('invalid manifest of schema 1: it has no signatures');
  const [part] = outer.signatures.map((each) => parsePayload(Buffer.from(each.protected, 'base64url').toString()));
  if (!Protected.Check(part) || part.formatLength > bytes.length) {
    throw new RegistryError('invalid manifest of schema 1: its signature does not say what it is about');
  }
  return Buffer.concat([bytes.subarray(0, part.formatLength), Buffer.from(part.formatTail, 'base64url')]);
}

/** Reads the signed part. Refusals are in dockerd's words. */
export function parseOldManifest(bytes: Buffer, digest: string): OldManifest {
  const json = parsePayload(bytes.toString());
  if (!Manifest.Check(json)) {
    const [, [first]] = Manifest.Errors(json);
    throw new RegistryError(`invalid manifest ${digest}: ${first?.instancePath || 'it'} ${first?.message ?? ''}`);
  }
  const { fsLayers, history } = json;
  if (fsLayers.length !== history.length) {
    throw new RegistryError(`length of history not equal to number of layers for ${JSON.stringify(digest)}`);
  }
  const steps = fsLayers.map(({ blobSum }, index) => stepOf(blobSum, history[index]!.v1Compatibility));
  return { steps: inOrder(steps.toReversed()).map(({ id: _id, parent: _parent, ...step }) => step) };
}

type Step = OldLayer & { id: string; parent: string };

function stepOf(blob: string, json: string): Step {
  const settings = parsePayload(json);
  if (!Settings.Check(settings)) throw new RegistryError('invalid manifest of schema 1: settings without an id');
  const { id, parent = '', throwaway = false } = settings;
  if (!/^[0-9a-f]{64}$/.test(id)) throw new RegistryError(`image ID ${JSON.stringify(id)} is invalid`);
  return { blob, json, isEmpty: throwaway, id, parent };
}

/** Each step is the child of the one below; one that is there again right above itself counts once. */
function inOrder(steps: readonly Step[]): Step[] {
  const [base] = steps;
  if (base!.parent !== '') throw new RegistryError('invalid parent ID in the base layer of the image');
  const seen = new Set<string>();
  const kept: Step[] = [];
  for (const step of steps) {
    const below = kept.at(-1);
    if (step.id === below?.id) continue;
    if (seen.has(step.id)) throw new RegistryError(`ID ${step.id} appears multiple times in manifest`);
    if (below !== undefined && step.parent !== below.id) {
      throw new RegistryError(`invalid parent ID. Expected ${below.id}, got ${step.parent}`);
    }
    seen.add(step.id);
    kept.push(step);
  }
  return kept;
}

function parsePayload(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch (error) {
    const reason = error instanceof UnboundedJsonError ? error.message : 'it is not JSON';
    throw new RegistryError(`invalid manifest of schema 1: ${reason}`, { cause: error });
  }
}
