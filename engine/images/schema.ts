import { Type, type Static } from 'typebox';

const Nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const Strings = Type.Array(Type.String());

export const ImageRef = Type.Object({
  ref: Type.String({ description: 'Name with tag or digest, id, or its beginning' }),
});

const flag = (description: string) => Type.Optional(Type.Boolean({ description }));
const text = (description: string) => Type.Optional(Type.String({ description }));

const platformText = 'JSON: the platform of an image that has several';

export const InspectImageQuery = Type.Object({
  platform: text(platformText),
  manifests: flag('With Manifests'),
});

export const ImageHistoryQuery = Type.Object({ platform: text(platformText) });

export const AttestationsQuery = Type.Object({
  platform: text(`${platformText}; default: the one that its name stands for`),
  type: Type.Optional(Type.Union([Type.String(), Strings], { description: 'Predicate type; may be repeated' })),
  statement: flag('With the statements'),
});

export const ListImagesQuery = Type.Object({
  all: flag('Also intermediate images'),
  filters: text('JSON map: dangling, label, before, since, reference, until'),
  filter: text('Only images with this name'),
  digests: flag('With RepoDigests'),
  'shared-size': flag('With SharedSize: layers that others of the listed images have too'),
  manifests: flag('With Manifests: the platforms and attestations of each image'),
  identity: flag('With Manifests, and the origins of each'),
});

export const CreateImageQuery = Type.Object({
  fromImage: text('Name of an image to pull'),
  fromSrc: text('`-` for the body, or a URL: a root file system to import'),
  repo: text('Name for an imported image, with or without a tag'),
  tag: text('Tag or digest'),
  message: text('Comment of an imported image'),
  platform: text("Platform to pull, or that of an imported image; default: this machine's"),
  changes: Type.Optional(
    Type.Union([Type.String(), Strings], { description: 'Instructions such as `CMD ["sh"]`; may be repeated' }),
  ),
});

const PlatformsQuery = Type.Optional(
  Type.Union([Type.String(), Strings], { description: `${platformText}; may be repeated` }),
);

export const LoadImagesQuery = Type.Object({ quiet: flag('Only the last line'), platform: PlatformsQuery });

export const SaveImagesQuery = Type.Object({
  names: Type.Optional(Type.Union([Type.String(), Strings], { description: 'May be repeated' })),
  platform: PlatformsQuery,
});

export const SaveImageQuery = Type.Object({ platform: PlatformsQuery });

export const PushImageQuery = Type.Object({
  tag: text('The tag; all of the repository without one'),
  platform: text('JSON: the only platform of an index to push'),
});

export const TagImageQuery = Type.Object({
  repo: text('The new name, with or without a tag'),
  tag: text('The tag, unless the name has one'),
  force: flag('Without effect: a name always moves'),
});

export const DeleteImageQuery = Type.Object({
  force: flag('Even with several names, or with stopped containers'),
  noprune: flag('Keep parents without a name'),
  platforms: PlatformsQuery,
});

const Platform = Type.Object({
  architecture: Type.String(),
  os: Type.String(),
  'os.version': Type.Optional(Type.String()),
  variant: Type.Optional(Type.String()),
});

export const ManifestDescriptor = Type.Object({
  mediaType: Type.String(),
  digest: Type.String(),
  size: Type.Integer(),
  annotations: Type.Optional(Type.Record(Type.String(), Type.String())),
  platform: Type.Optional(Platform),
  artifactType: Type.Optional(Type.String()),
});
export type ManifestDescriptor = Static<typeof ManifestDescriptor>;

const Identity = Type.Object({ Pull: Type.Array(Type.Object({ Repository: Type.String() })) });
export type Identity = Static<typeof Identity>;

const ManifestSummary = Type.Object({
  ID: Type.String(),
  Descriptor: ManifestDescriptor,
  Available: Type.Boolean(),
  Size: Type.Object({ Content: Type.Integer(), Total: Type.Integer() }),
  Kind: Type.String({ description: 'image, attestation or unknown' }),
  ImageData: Type.Optional(
    Type.Object({
      Platform,
      Identity: Type.Optional(Identity),
      Size: Type.Object({ Unpacked: Type.Integer() }),
      Containers: Nullable(Strings),
    }),
  ),
  AttestationData: Type.Optional(Type.Object({ For: Type.String() })),
});
export type ManifestSummary = Static<typeof ManifestSummary>;

export const AttestationStatement = Type.Object({
  Descriptor: ManifestDescriptor,
  PredicateType: Type.String(),
  Statement: Type.Optional(Type.Unknown({ description: 'The statement as it was stored (in-toto)' })),
});
export type AttestationStatement = Static<typeof AttestationStatement>;

export const ImageSummary = Type.Object({
  Id: Type.String(),
  ParentId: Type.String(),
  RepoTags: Nullable(Strings),
  RepoDigests: Nullable(Strings),
  Created: Type.Integer(),
  Size: Type.Integer(),
  VirtualSize: Type.Integer(),
  SharedSize: Type.Integer(),
  Containers: Type.Integer(),
  Labels: Nullable(Type.Record(Type.String(), Type.String())),
  Descriptor: Type.Optional(ManifestDescriptor),
  Manifests: Type.Optional(Type.Array(ManifestSummary)),
});
export type ImageSummary = Static<typeof ImageSummary>;

/** An image's settings as a container configuration, with all fields, even those that do not apply to an image. */
const ImageConfigWire = Type.Object({}, { additionalProperties: true });

export const ImageInspect = Type.Object({
  Id: Type.String(),
  RepoTags: Strings,
  RepoDigests: Strings,
  Parent: Type.String(),
  Comment: Type.String(),
  Created: Type.String(),
  Container: Type.String(),
  ContainerConfig: ImageConfigWire,
  EngineVersion: Type.String(),
  DockerVersion: Type.String({ description: "EngineVersion under Docker's name" }),
  Author: Type.String(),
  Config: ImageConfigWire,
  Architecture: Type.String(),
  Variant: Type.Optional(Type.String()),
  Os: Type.String(),
  Size: Type.Integer(),
  VirtualSize: Type.Integer(),
  GraphDriver: Type.Object({
    Name: Type.String(),
    Data: Type.Record(Type.String(), Type.String()),
  }),
  RootFS: Type.Object({ Type: Type.String(), Layers: Type.Optional(Strings) }),
  Metadata: Type.Object({ LastTagTime: Type.String() }),
  Descriptor: Type.Optional(ManifestDescriptor),
  Manifests: Type.Optional(Type.Array(ManifestSummary)),
  Identity: Type.Optional(Identity),
});
export type ImageInspect = Static<typeof ImageInspect>;

export const HistoryStep = Type.Object({
  Id: Type.String(),
  Created: Type.Integer(),
  CreatedBy: Type.String(),
  Tags: Nullable(Strings),
  Size: Type.Integer(),
  Comment: Type.String(),
});
export type HistoryStep = Static<typeof HistoryStep>;

export const DeleteResult = Type.Object({
  Untagged: Type.Optional(Type.String()),
  Deleted: Type.Optional(Type.String()),
});
export type DeleteResult = Static<typeof DeleteResult>;

export const PrunedImages = Type.Object({
  ImagesDeleted: Nullable(Type.Array(DeleteResult)),
  SpaceReclaimed: Type.Integer(),
});

export const DistributionInspect = Type.Object({
  Descriptor: Type.Object({ mediaType: Type.String(), digest: Type.String(), size: Type.Integer() }),
  Platforms: Type.Array(Platform),
});
export type DistributionInspect = Static<typeof DistributionInspect>;
