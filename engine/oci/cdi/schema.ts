import { Type, type Static } from 'typebox';

const DeviceNode = Type.Object({
  path: Type.String({ pattern: '^/' }),
  hostPath: Type.Optional(Type.String()),
  permissions: Type.Optional(Type.String({ pattern: '^[rwm]*$' })),
  fileMode: Type.Optional(Type.Integer({ minimum: 0 })),
  uid: Type.Optional(Type.Integer({ minimum: 0 })),
  gid: Type.Optional(Type.Integer({ minimum: 0 })),
});

const Mount = Type.Object({
  hostPath: Type.String({ minLength: 1 }),
  containerPath: Type.String({ pattern: '^/' }),
  options: Type.Optional(Type.Array(Type.String())),
  type: Type.Optional(Type.String()),
});

const HOOK_NAMES = ['prestart', 'createRuntime', 'createContainer', 'startContainer', 'poststart', 'poststop'] as const;
const Hook = Type.Object({
  hookName: Type.Union(HOOK_NAMES.map((name) => Type.Literal(name))),
  path: Type.String({ pattern: '^/' }),
  args: Type.Optional(Type.Array(Type.String())),
  env: Type.Optional(Type.Array(Type.String())),
  timeout: Type.Optional(Type.Integer({ minimum: 1 })),
});

/** The changes of a container for a device. */
const Edits = Type.Object({
  env: Type.Optional(Type.Array(Type.String({ pattern: '^[^=]+=' }))),
  deviceNodes: Type.Optional(Type.Array(DeviceNode)),
  mounts: Type.Optional(Type.Array(Mount)),
  hooks: Type.Optional(Type.Array(Hook)),
});
export type Edits = Readonly<Static<typeof Edits>>;

const NAME = '^[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?$';

/** A specification of the Container Device Interface: the devices of one vendor and class. */
export const DeviceSpec = Type.Object({
  cdiVersion: Type.String({ pattern: '^v?[01]\\.\\d+\\.\\d+$' }),
  kind: Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_.-]*/[A-Za-z][A-Za-z0-9_-]*$' }),
  devices: Type.Array(Type.Object({ name: Type.String({ pattern: NAME }), containerEdits: Edits }), { minItems: 1 }),
  containerEdits: Type.Optional(Edits),
});
export type DeviceSpec = Readonly<Static<typeof DeviceSpec>>;
