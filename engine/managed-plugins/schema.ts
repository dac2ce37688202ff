import { Type, type Static } from 'typebox';

export const PluginRef = Type.Object({ ref: Type.String({ description: 'Name with or without its tag, or id' }) });

export const PullPluginQuery = Type.Object({
  name: Type.Optional(Type.String({ description: 'Name in a registry, with a tag or digest' })),
});
export const EnablePluginQuery = Type.Object({
  timeout: Type.Optional(Type.Integer({ minimum: 0, description: 'Seconds to listen and to answer' })),
});
export const ForceQuery = Type.Object({
  force: Type.Optional(Type.Boolean({ description: 'Even if it is in use, or enabled' })),
});

export const PrivilegeWire = Type.Object({
  Name: Type.String(),
  Description: Type.String(),
  Value: Type.Array(Type.String()),
});
export type Privilege = Static<typeof PrivilegeWire>;

/** `Config` and `Manifest` as in the specification; from 1.25 on `Config` is what the registry has. */
export const PluginWire = Type.Object({
  Id: Type.String(),
  Name: Type.String(),
  Tag: Type.String(),
  Active: Type.Boolean(),
  Config: Type.Unknown(),
  Manifest: Type.Unknown(),
  Enabled: Type.Boolean(),
  PluginReference: Type.String(),
  Settings: Type.Unknown(),
});
export type PluginWire = Static<typeof PluginWire>;
