import { Type, type Static } from 'typebox';

export const VolumeName = Type.Object({ name: Type.String() });

export const CreateVolumeBody = Type.Object({
  Name: Type.Optional(Type.String()),
  Driver: Type.Optional(Type.String()),
  DriverOpts: Type.Optional(Type.Record(Type.String(), Type.String())),
  Labels: Type.Optional(Type.Record(Type.String(), Type.String())),
  ClusterVolumeSpec: Type.Optional(
    Type.Union([Type.Object({}, { additionalProperties: true }), Type.Null()], { description: 'Refused' }),
  ),
});

export const VolumesQuery = Type.Object({ filters: Type.Optional(Type.String()) });
export const RemoveVolumeQuery = Type.Object({
  force: Type.Optional(Type.Boolean({ default: false, description: 'A missing volume is no error' })),
});

export const VolumeWire = Type.Object({
  Name: Type.String(),
  Driver: Type.String(),
  Mountpoint: Type.String(),
  CreatedAt: Type.String(),
  Labels: Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()]),
  Scope: Type.String(),
  Status: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  Options: Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()]),
});
export type VolumeWire = Static<typeof VolumeWire>;

export const VolumeList = Type.Object({
  Volumes: Type.Array(VolumeWire),
  Warnings: Type.Union([Type.Array(Type.String()), Type.Null()]),
});
export type VolumeList = Static<typeof VolumeList>;

export const PrunedVolumes = Type.Object({
  VolumesDeleted: Type.Array(Type.String()),
  SpaceReclaimed: Type.Integer(),
});
