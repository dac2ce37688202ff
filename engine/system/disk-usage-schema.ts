import { Type, type Static } from 'typebox';

import { Summary } from '../containers/schema.ts';
import { ImageSummary } from '../images/schema.ts';
import { VolumeWire } from '../volumes/schema.ts';

const number = Type.Integer();
const text = Type.String();

const BuildCache = Type.Object({
  ID: text,
  Parent: text,
  Type: text,
  Description: text,
  InUse: Type.Boolean(),
  Shared: Type.Boolean(),
  Size: number,
  CreatedAt: text,
  LastUsedAt: text,
  UsageCount: number,
});

const VolumeWithUsage = Type.Object({
  ...VolumeWire.properties,
  UsageData: Type.Object({ Size: number, RefCount: number }),
});

/** Sums of one kind of objects, in bytes, and the objects. */
const usageOf = <Item extends Type.TSchema>(item: Item) =>
  Type.Optional(
    Type.Object({
      ActiveCount: number,
      TotalCount: number,
      Reclaimable: number,
      TotalSize: number,
      Items: Type.Array(item),
    }),
  );

export const DISK_USAGE_KINDS = ['image', 'container', 'volume', 'build-cache'] as const;

export const DiskUsageQuery = Type.Object({
  type: Type.Optional(
    Type.Array(Type.String(), { description: `${DISK_USAGE_KINDS.join(', ')}; may be repeated; default: all` }),
  ),
  verbose: Type.Optional(Type.Boolean({ description: 'From 1.52 on: without the lists beside the usage objects' })),
});

/** The lists of older clients, and the usage objects of newer ones. */
export const DiskUsageWire = Type.Object({
  LayersSize: Type.Optional(number),
  Images: Type.Optional(Type.Array(ImageSummary)),
  Containers: Type.Optional(Type.Array(Summary)),
  Volumes: Type.Optional(Type.Array(VolumeWithUsage)),
  BuildCache: Type.Optional(Type.Array(BuildCache)),
  BuilderSize: Type.Optional(number),
  ImageUsage: usageOf(ImageSummary),
  ContainerUsage: usageOf(Summary),
  VolumeUsage: usageOf(VolumeWithUsage),
  BuildCacheUsage: usageOf(BuildCache),
});
export type DiskUsageWire = Static<typeof DiskUsageWire>;
