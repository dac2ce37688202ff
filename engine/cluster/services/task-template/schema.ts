import { Type, type Static, type TSchema } from 'typebox';

import { CountField, IntegerField } from '../../../lib/notations/field-schemas.ts';

export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const orNull = <T extends TSchema>(schema: T) => Type.Optional(nullable(schema));
export const text = Type.Optional(Type.String());
export const whole = Type.Optional(IntegerField);
export const Texts = Type.Record(Type.String(), Type.String());
export const Strings = Type.Array(Type.String());
const flag = Type.Optional(Type.Boolean());
/** 32 bits, as Go's file modes. */
const ModeField = Type.Integer({ minimum: 0, maximum: 0xff_ff_ff_ff });

const Mount = Type.Object({
  Type: text,
  Source: text,
  Target: text,
  ReadOnly: flag,
  BindOptions: orNull(
    Type.Object({
      Propagation: text,
      NonRecursive: flag,
      CreateMountpoint: flag,
      ReadOnlyNonRecursive: flag,
      ReadOnlyForceRecursive: flag,
    }),
  ),
  VolumeOptions: orNull(
    Type.Object({
      NoCopy: flag,
      Subpath: text,
      Labels: orNull(Texts),
      DriverConfig: orNull(Type.Object({ Name: text, Options: orNull(Texts) })),
    }),
  ),
  TmpfsOptions: orNull(
    Type.Object({ SizeBytes: whole, Mode: Type.Optional(ModeField), Options: orNull(Type.Array(Strings)) }),
  ),
  /** Since version 1.48. */
  ImageOptions: orNull(Type.Object({ Subpath: text })),
});

export const Networks = Type.Array(
  Type.Object({
    Target: text,
    Aliases: orNull(Strings),
    DriverOpts: orNull(Texts),
  }),
);

const amounts = { NanoCPUs: whole, NanoCPU: whole, MemoryBytes: whole };
const GenericResource = Type.Object({
  DiscreteResourceSpec: orNull(Type.Object({ Kind: text, Value: whole })),
  NamedResourceSpec: orNull(Type.Object({ Kind: text, Value: text })),
});
const Resources = Type.Object({
  Limits: orNull(Type.Object({ ...amounts, Pids: whole })),
  Reservations: orNull(Type.Object({ ...amounts, GenericResources: orNull(Type.Array(GenericResource)) })),
  /** Since version 1.52. */
  SwapBytes: orNull(IntegerField),
  MemorySwappiness: orNull(IntegerField),
});

const FileTarget = Type.Object({ Name: text, UID: text, GID: text, Mode: Type.Optional(ModeField) });
const Healthcheck = Type.Object({
  Test: orNull(Strings),
  Interval: whole,
  Timeout: whole,
  Retries: whole,
  /** Since version 1.29, the interval of 1.44. */
  StartPeriod: whole,
  StartInterval: whole,
});
const Privileges = Type.Object({
  CredentialSpec: orNull(Type.Object({ Config: text, File: text, Registry: text })),
  SELinuxContext: orNull(Type.Object({ Disable: flag, User: text, Role: text, Type: text, Level: text })),
  /** Since version 1.44. */
  Seccomp: orNull(Type.Object({ Mode: text, Profile: orNull(Type.String()) })),
  AppArmor: orNull(Type.Object({ Mode: text })),
  NoNewPrivileges: flag,
});

const ContainerSpec = Type.Object({
  Image: text,
  Labels: orNull(Texts),
  Command: orNull(Strings),
  Args: orNull(Strings),
  Env: orNull(Strings),
  Dir: text,
  User: text,
  Mounts: orNull(Type.Array(Mount)),
  StopGracePeriod: orNull(IntegerField),
  /** Since version 1.25, the configs of 1.30. */
  Secrets: orNull(Type.Array(nullable(Type.Object({ SecretID: text, SecretName: text, File: orNull(FileTarget) })))),
  Configs: orNull(
    Type.Array(
      nullable(
        Type.Object({ ConfigID: text, ConfigName: text, File: orNull(FileTarget), Runtime: orNull(Type.Object({})) }),
      ),
    ),
  ),
  Hostname: text,
  Groups: orNull(Strings),
  TTY: flag,
  OpenStdin: flag,
  Hosts: orNull(Strings),
  DNSConfig: orNull(Type.Object({ Nameservers: orNull(Strings), Search: orNull(Strings), Options: orNull(Strings) })),
  Healthcheck: orNull(Healthcheck),
  /** Since version 1.28. */
  StopSignal: text,
  ReadOnly: flag,
  /** Since version 1.30. */
  Privileges: orNull(Privileges),
  /** Since version 1.35. */
  Isolation: text,
  /** Since version 1.37. */
  Init: orNull(Type.Boolean()),
  /** Since version 1.40. */
  Sysctls: orNull(Texts),
  /** Since version 1.41. */
  CapabilityAdd: orNull(Strings),
  CapabilityDrop: orNull(Strings),
  Ulimits: orNull(Type.Array(nullable(Type.Object({ Name: text, Soft: whole, Hard: whole })))),
  /** Since version 1.46. */
  OomScoreAdj: whole,
});

const Placement = Type.Object({
  Constraints: orNull(Strings),
  /** Since version 1.27. */
  Preferences: orNull(Type.Array(Type.Object({ Spread: orNull(Type.Object({ SpreadDescriptor: text })) }))),
  /** Since version 1.30. */
  Platforms: orNull(Type.Array(Type.Object({ Architecture: text, OS: text }))),
  /** Since version 1.40. */
  MaxReplicas: Type.Optional(CountField),
});

export const TaskTemplateBody = Type.Object({
  ContainerSpec: orNull(ContainerSpec),
  PluginSpec: orNull(Type.Object({})),
  NetworkAttachmentSpec: orNull(Type.Object({})),
  /** Since version 1.29. */
  Runtime: text,
  LogDriver: orNull(Type.Object({ Name: text, Options: orNull(Texts) })),
  Resources: orNull(Resources),
  RestartPolicy: orNull(
    Type.Object({
      Condition: text,
      Delay: orNull(IntegerField),
      MaxAttempts: orNull(CountField),
      Window: orNull(IntegerField),
    }),
  ),
  Placement: orNull(Placement),
  /** Since version 1.25: any other number replaces all tasks. */
  ForceUpdate: Type.Optional(CountField),
  /** Since version 1.25: they count instead of those of the service. */
  Networks: orNull(Networks),
});
export type TaskTemplateBody = Readonly<Static<typeof TaskTemplateBody>>;
export type ContainerBody = NonNullable<TaskTemplateBody['ContainerSpec']>;
export type MountBody = NonNullable<ContainerBody['Mounts']>[number];
export type ResourcesBody = NonNullable<TaskTemplateBody['Resources']>;
