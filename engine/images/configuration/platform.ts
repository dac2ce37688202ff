import { Type } from 'typebox';

import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';
import { EngineError } from '../../lib/errors.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import type { Image } from '../store.ts';
import { goArchitecture } from './architecture.ts';

/** A platform as a client asks for it: `linux/arm64/v8`. An empty variant stands for any. */
export type Platform = Readonly<{ os: string; architecture: string; variant: string }>;

const SYSTEMS: ReadonlySet<string> = new Set(['linux', 'windows', 'darwin', 'freebsd']);
/** Architectures by their other names, with the variant that these imply. */
const ARCHITECTURES: ReadonlyMap<string, { architecture: string; variant?: string }> = new Map(
  Object.entries({
    ...Object.fromEntries(
      ['386', 'amd64', 'arm', 'arm64', 'ppc64le', 'riscv64', 's390x', 'mips64le', 'loong64'].map((name) => [
        name,
        { architecture: name },
      ]),
    ),
    i386: { architecture: '386' },
    x86_64: { architecture: 'amd64' },
    'x86-64': { architecture: 'amd64' },
    aarch64: { architecture: 'arm64' },
    armhf: { architecture: 'arm', variant: 'v7' },
    armel: { architecture: 'arm', variant: 'v6' },
  }),
);

/** Empty values, as clients in languages with such a value write them. */
const EMPTY: ReadonlySet<string> = new Set(['', 'null', '[]', '{}']);

/** This machine's platform. */
export const HOST_PLATFORM: Platform = { os: 'linux', architecture: goArchitecture(), variant: '' };

/** Undefined for an empty text: any platform. Throws `invalid`. */
export function parsePlatform(text: string | undefined): Platform | undefined {
  if (text === undefined || EMPTY.has(text)) return undefined;
  const parts = text.toLowerCase().split('/');
  const [first = '', second, third = ''] = parts;
  if (parts.length > 3 || parts.some((part) => !/^[\w-]+$/.test(part))) {
    throw new EngineError(
      'invalid',
      `${JSON.stringify(text)} is an invalid platform: os, os/architecture or os/architecture/variant`,
    );
  }
  if (second !== undefined) {
    const { architecture, variant = '' } = ARCHITECTURES.get(second) ?? { architecture: second };
    return { os: first, architecture, variant: third || variant };
  }
  if (SYSTEMS.has(first)) return { os: first, architecture: goArchitecture(), variant: '' };
  const known = ARCHITECTURES.get(first);
  if (known !== undefined) return { os: 'linux', architecture: known.architecture, variant: known.variant ?? '' };
  throw new EngineError('invalid', `${JSON.stringify(text)}: unknown operating system or architecture`);
}

const jsonPlatform = lazyCheck(
  Type.Object({ os: Type.String(), architecture: Type.String(), variant: Type.Optional(Type.String()) }),
);

/** A platform as JSON, which reads of stored images take; undefined for an empty text. Throws `invalid`. */
export function parseJsonPlatform(text = ''): Platform | undefined {
  if (text === '') return undefined;
  try {
    const value = parseBoundedJson(text);
    if (jsonPlatform.Check(value)) return { variant: '', ...value };
  } catch (error) {
    if (!(error instanceof UnboundedJsonError || error instanceof SyntaxError)) throw error;
  }
  throw new EngineError('invalid', 'failed to parse platform: a JSON object with os and architecture is expected');
}

/** A parameter that may be repeated; none for any platform. Throws `invalid`. */
export function parseJsonPlatforms(texts: string | readonly string[] | undefined): Platform[] {
  return [texts ?? []].flat().flatMap((text) => parseJsonPlatform(text) ?? []);
}

type Own = Readonly<{ os: string; architecture: string; variant?: string | null | undefined }>;

/** Whether an image of a platform is one that a client asked for. */
export function fitsPlatform(wanted: Platform, { os, architecture, variant }: Own): boolean {
  const isSystem = wanted.os === (os || 'linux') && wanted.architecture === architecture;
  return isSystem && (wanted.variant === '' || (variant ?? '') === '' || wanted.variant === variant);
}

export function platformText({ os, architecture, variant }: Platform): string {
  return [os, architecture, ...(variant === '' ? [] : [variant])].join('/');
}

/** Throws `notFound` for an image of another platform. */
export function checkPlatform(
  image: Pick<Image, 'os' | 'architecture' | 'variant'>,
  ref: string,
  wanted: Platform | undefined,
): void {
  if (wanted === undefined || fitsPlatform(wanted, image)) return;
  const own = platformText({ ...image, variant: image.variant });
  throw new EngineError(
    'notFound',
    `image with reference ${ref} was found but does not match the specified platform: ` +
      `wanted ${platformText(wanted)}, actual: ${own}`,
  );
}

/** Throws `notFound` for an index without an image of this platform. */
export function notProvided(ref: string, wanted: Platform): never {
  const text = `image with reference ${ref} was found but does not provide the specified platform (${platformText(wanted)})`;
  throw new EngineError('notFound', text);
}
