import { Type, type Static } from 'typebox';

import { CountField } from '../../lib/notations/field-schemas.ts';
import { Networks, orNull, TaskTemplateBody, text, Texts, whole } from './task-template/schema.ts';

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
      /** Since version 1.41. */
      ReplicatedJob: orNull(Type.Object({ MaxConcurrent: orNull(CountField), TotalCompletions: orNull(CountField) })),
      GlobalJob: orNull(Type.Object({})),
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

export const ServicesQuery = Type.Object({
  filters: Type.Optional(Type.String({ description: 'JSON map of id, label, mode, name or runtime to its values' })),
  status: Type.Optional(Type.String({ description: 'A boolean: counts the tasks of each service' })),
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
