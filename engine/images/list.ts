import type { Engine } from '../engine.ts';
import { booleanFilter, labelsMatch, type Filters } from '../http/values/filters.ts';
import { parseTime } from '../http/values/times.ts';
import { Slices } from '../lib/concurrency/slices.ts';
import { nameFilter } from './names/name-pattern.ts';
import { familiarReference } from './names/reference.ts';
import type { Image, ImageStore } from './store.ts';

type Needs = Pick<Engine, 'images' | 'clock'>;

export const IMAGE_FILTERS = ['dangling', 'label', 'before', 'since', 'reference', 'until'];

type Options = {
  all: boolean;
  /** Only images with a matching name, and only their matching names. */
  name?: string;
  filters: Filters;
};

/** An image with those of its names that the query selected. */
export type Listed = { image: Image; tags: string[]; digests: string[] };

/** The images, newest first: those with a name or without a child, unless `all` asks for intermediate images too. */
export async function listImages(engine: Needs, { all: withSteps, name, filters }: Options): Promise<Listed[]> {
  const { images, clock } = engine;
  const until = createdUntil(filters.get('until'), clock.now());
  const before = olderThan(images, filters.get('before'));
  const since = youngerThan(images, filters.get('since'));
  const dangling = booleanFilter(filters, 'dangling');
  const globs = [...(filters.get('reference') ?? []), ...(name === undefined || name === '' ? [] : [name])];
  const isWanted = nameFilter(globs);
  const listed: Listed[] = [];
  const slices = new Slices(); // globs may cost much for each image
  for (const image of images.all()) {
    if (slices.isOver) await slices.pause();
    if (images.isOtherPlatform(image.id)) continue;
    const all = images.referencesOf(image.id);
    const names = all.filter(isWanted);
    const isStep = images.childrenOf(image.id).length > 0;
    const isNameless = all.length === 0;
    if (!before(image) || !since(image) || !until(image)) continue;
    if (!labelsMatch(filters.get('label'), image.labels ?? {})) continue;
    if (isNameless && isStep && (!withSteps || dangling !== undefined)) continue;
    // An image with a digest alone is dangling, but also listed without dangling ones, as in dockerd.
    if (dangling === true && (isStep || all.some(({ tag }) => tag !== undefined))) continue;
    if (dangling === false && isNameless) continue;
    if (globs.length > 0 && names.length === 0) continue;
    listed.push({
      image,
      tags: names.filter(({ tag }) => tag !== undefined).map(familiarReference),
      digests: names.filter(({ digest }) => digest !== undefined).map(familiarReference),
    });
  }
  const present = listed.filter(({ image }) => images.get(image.id) !== undefined); // others were removed meanwhile
  return present.toSorted((a, b) => createdNs(b.image) - createdNs(a.image));
}

function olderThan(images: ImageStore, refs: ReadonlySet<string> | undefined): (image: Image) => boolean {
  const limits = [...(refs ?? [])].map((ref) => createdNs(images.find(ref)));
  return (image) => limits.every((limit) => createdNs(image) < limit);
}

function youngerThan(images: ImageStore, refs: ReadonlySet<string> | undefined): (image: Image) => boolean {
  const limits = [...(refs ?? [])].map((ref) => createdNs(images.find(ref)));
  return (image) => limits.every((limit) => createdNs(image) > limit);
}

/** An image without a time of creation is always old enough, as in dockerd. */
function createdUntil(
  texts: ReadonlySet<string> | undefined,
  now: Temporal.Instant,
): (image: Pick<Image, 'createdAt'>) => boolean {
  const limits = [...(texts ?? [])].map((text) => parseTime('until', text, now));
  return ({ createdAt }) =>
    createdAt === undefined || limits.every((limit) => Temporal.Instant.compare(createdAt, limit) <= 0);
}

/** Precise enough for sorting: a number is exact to about 200 ns. */
function createdNs(image: Image): number {
  return Number(image.createdAt?.epochNanoseconds ?? 0n);
}
