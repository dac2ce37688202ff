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

export const DiskUsageWire = Type.Object({
  LayersSize: number,
  Images: Type.Array(ImageSummary),
  Containers: Type.Array(Summary),
  Volumes: Type.Array(
    Type.Object({ ...VolumeWire.properties, UsageData: Type.Object({ Size: number, RefCount: number }) }),
  ),
  BuildCache: Type.Array(BuildCache),
  BuilderSize: number,
});
export type DiskUsageWire = Static<typeof DiskUsageWire>;
