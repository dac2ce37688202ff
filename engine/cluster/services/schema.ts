import { Type, type Static, type TSchema } from 'typebox';

import { CountField, IntegerField } from '../../lib/notations/field-schemas.ts';

const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const orNull = <T extends TSchema>(schema: T) => Type.Optional(nullable(schema));
/** 32 bits, as Go's file modes. */
const ModeField = Type.Integer({ minimum: 0, maximum: 0xff_ff_ff_ff });
const text = Type.Optional(Type.String());
const whole = Type.Optional(IntegerField);
const Texts = Type.Record(Type.String(), Type.String());
const Strings = Type.Array(Type.String());

const Mount = Type.Object({
  Type: text,
  Source: text,
  Target: text,
  ReadOnly: Type.Optional(Type.Boolean()),
  BindOptions: orNull(Type.Object({ Propagation: text })),
  VolumeOptions: orNull(
    Type.Object({
      NoCopy: Type.Optional(Type.Boolean()),
      Labels: orNull(Texts),
      DriverConfig: orNull(Type.Object({ Name: text, Options: orNull(Texts) })),
    }),
  ),
});

const Networks = Type.Array(Type.Object({ Target: text, Aliases: orNull(Strings) }));
const Amounts = Type.Object({ NanoCPUs: whole, NanoCPU: whole, MemoryBytes: whole });

const FileTarget = Type.Object({ Name: text, UID: text, GID: text, Mode: Type.Optional(ModeField) });

export const TaskTemplateBody = Type.Object({
  ContainerSpec: orNull(
    Type.Object({
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
      Secrets: orNull(
        Type.Array(nullable(Type.Object({ SecretID: text, SecretName: text, File: orNull(FileTarget) }))),
      ),
      Configs: orNull(
        Type.Array(
          nullable(
            Type.Object({
              ConfigID: text,
              ConfigName: text,
              File: orNull(FileTarget),
              Runtime: orNull(Type.Object({})),
            }),
          ),
        ),
      ),
    }),
  ),
  LogDriver: orNull(Type.Object({ Name: text, Options: orNull(Texts) })),
  Resources: orNull(Type.Object({ Limits: orNull(Amounts), Reservations: orNull(Amounts) })),
  RestartPolicy: orNull(
    Type.Object({
      Condition: text,
      Delay: orNull(IntegerField),
      MaxAttempts: orNull(CountField),
      Window: orNull(IntegerField),
    }),
  ),
  Placement: orNull(Type.Object({ Constraints: orNull(Strings) })),
  /** Since version 1.25: any other number replaces all tasks. */
  ForceUpdate: Type.Optional(CountField),
  /** Since version 1.25: they count instead of those of the service. */
  Networks: orNull(Networks),
});

const UpdateConfig = Type.Object({
  Parallelism: Type.Optional(CountField),
  Delay: whole,
  FailureAction: text,
  /** These two are of version 1.25, the order of 1.29. */
  Monitor: whole,
  MaxFailureRatio: Type.Optional(Type.Number()),
  Order: text,
});

/** The specification's "Service": body of a creation and of an update. */
export const ServiceBody = Type.Object({
  Name: text,
  Labels: orNull(Texts),
  TaskTemplate: Type.Optional(TaskTemplateBody),
  Mode: orNull(
    Type.Object({
      Replicated: orNull(Type.Object({ Replicas: orNull(CountField) })),
      Global: orNull(Type.Object({})),
    }),
  ),
  UpdateConfig: orNull(UpdateConfig),
  /** Since version 1.28: for updates that are taken back. */
  RollbackConfig: orNull(UpdateConfig),
  Networks: orNull(Networks),
  EndpointSpec: orNull(
    Type.Object({
      Mode: text,
      Ports: orNull(
        Type.Array(
          Type.Object({
            Name: text,
            Protocol: text,
            TargetPort: Type.Optional(CountField),
            PublishedPort: Type.Optional(CountField),
            /** Since version 1.26. */
            PublishMode: text,
          }),
        ),
      ),
    }),
  ),
});
export type ServiceBody = Readonly<Static<typeof ServiceBody>>;
export type TaskTemplateBody = Readonly<Static<typeof TaskTemplateBody>>;

export const ServicesQuery = Type.Object({
  filters: Type.Optional(Type.String({ description: 'JSON map of id, label, mode, name or runtime to its values' })),
});
export const ServiceRef = Type.Object({ ref: Type.String({ description: 'Id, name, or unique prefix of an id' }) });
export const ServiceQuery = Type.Object({
  insertDefaults: Type.Optional(
    Type.String({ description: 'A boolean: shows the defaults of fields that the client left out' }),
  ),
});
export const UpdateServiceQuery = Type.Object({
  version: Type.Optional(Type.String({ description: 'The Version.Index of the service that the update is of' })),
  rollback: Type.Optional(Type.String({ description: '`previous`: the specification before the last update counts' })),
});
