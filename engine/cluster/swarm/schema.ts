import { Type, type Static, type TSchema } from 'typebox';

import { CountField, IntegerField } from '../../lib/notations/field-schemas.ts';

const orNull = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
const text = Type.Optional(Type.String());
const whole = Type.Optional(CountField);
const Texts = Type.Record(Type.String(), Type.String());

export const SpecBody = Type.Object({
  Name: text,
  Labels: orNull(Texts),
  Orchestration: orNull(Type.Object({ TaskHistoryRetentionLimit: orNull(IntegerField) })),
  Raft: orNull(
    Type.Object({
      SnapshotInterval: whole,
      KeepOldSnapshots: orNull(CountField),
      LogEntriesForSlowFollowers: whole,
      HeartbeatTick: whole,
      ElectionTick: whole,
    }),
  ),
  Dispatcher: orNull(Type.Object({ HeartbeatPeriod: Type.Optional(IntegerField) })),
  CAConfig: orNull(
    Type.Object({
      NodeCertExpiry: Type.Optional(IntegerField),
      ExternalCAs: orNull(
        Type.Array(Type.Object({ Protocol: text, URL: text, Options: orNull(Texts), CACert: orNull(Type.String()) })),
      ),
      SigningCACert: orNull(Type.String()),
      SigningCAKey: orNull(Type.String()),
      ForceRotate: orNull(CountField),
    }),
  ),
  TaskDefaults: orNull(Type.Object({ LogDriver: orNull(Type.Object({ Name: text, Options: orNull(Texts) })) })),
  EncryptionConfig: orNull(Type.Object({ AutoLockManagers: Type.Optional(Type.Boolean()) })),
  JoinTokens: orNull(Type.Object({ Worker: text, Manager: text })),
});
export type SpecBody = Readonly<Static<typeof SpecBody>>;

export const InitBody = Type.Object({
  ListenAddr: text,
  AdvertiseAddr: text,
  DataPathAddr: orNull(Type.String()),
  DataPathPort: orNull(CountField),
  ForceNewCluster: Type.Optional(Type.Boolean()),
  DefaultAddrPool: orNull(Type.Array(Type.String())),
  SubnetSize: whole,
  Spec: orNull(SpecBody),
});

export const JoinBody = Type.Object({
  ListenAddr: text,
  AdvertiseAddr: text,
  DataPathAddr: orNull(Type.String()),
  RemoteAddrs: orNull(Type.Array(Type.String())),
  JoinToken: text,
});

export const LeaveQuery = Type.Object({ force: Type.Optional(Type.Boolean({ default: false })) });

export const UpdateQuery = Type.Object({
  version: Type.Optional(Type.String({ description: 'The Version.Index of the cluster that the update is of' })),
  rotateWorkerToken: Type.Optional(Type.String({ description: 'A boolean: 1, t, true, 0, f or false' })),
  rotateManagerToken: Type.Optional(Type.String({ description: 'A boolean: 1, t, true, 0, f or false' })),
  rotateManagerUnlockKey: Type.Optional(Type.String({ description: 'A boolean: 1, t, true, 0, f or false' })),
});

export const UnlockBody = Type.Object({ UnlockKey: orNull(Type.String()) });
