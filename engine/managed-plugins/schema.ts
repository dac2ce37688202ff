import { Type, type Static } from 'typebox';

export const PluginRef = Type.Object({ ref: Type.String({ description: 'Name with or without its tag, or id' }) });

export const PluginsQuery = Type.Object({
  filters: Type.Optional(Type.String({ description: 'enabled, capability' })),
});
export const RemoteQuery = Type.Object({
  remote: Type.Optional(Type.String({ description: 'Name in a registry, with a tag or digest' })),
});
export const PullPluginQuery = Type.Object({
  remote: Type.Optional(
    Type.String({ description: 'Name in a registry, with a tag or digest; below 1.25 that is `name`' }),
  ),
  name: Type.Optional(Type.String({ description: 'Its name here; default: that in the registry' })),
});
export const CreatePluginQuery = Type.Object({
  name: Type.Optional(Type.String({ description: 'With or without a tag' })),
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

/** The permissions that the user grants. */
export const GrantedBody = Type.Optional(
  Type.Union([
    Type.Array(
      Type.Object({
        Name: Type.String(),
        Description: Type.Optional(Type.String()),
        Value: Type.Union([Type.Array(Type.String()), Type.Null()]),
      }),
    ),
    Type.Null(),
  ]),
);
export type Granted = readonly Readonly<{ Name: string; Value: readonly string[] | null }>[];

/** Such as `DEBUG=1`. */
export const SettingsBody = Type.Array(Type.String());

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
