import { Type, type Static } from 'typebox';

import { Healthcheck } from '../../records/healthcheck.ts';

/** A set as a JSON object: `{"80/tcp": {}}`. Clients also send null as a value. */
const NameSet = Type.Record(Type.String(), Type.Union([Type.Object({}), Type.Null()]));

/** A command: one word, or a list of words. */
export const Words = Type.Union([Type.String(), Type.Array(Type.String())]);

/** The body of a creation, before the image's settings are merged in. */
export const ContainerConfigBody = Type.Object({
  Hostname: Type.Optional(Type.String()),
  Domainname: Type.Optional(Type.String()),
  User: Type.Optional(Type.String()),
  AttachStdin: Type.Optional(Type.Boolean()),
  AttachStdout: Type.Optional(Type.Boolean()),
  AttachStderr: Type.Optional(Type.Boolean()),
  ExposedPorts: Type.Optional(NameSet),
  Tty: Type.Optional(Type.Boolean()),
  OpenStdin: Type.Optional(Type.Boolean()),
  StdinOnce: Type.Optional(Type.Boolean()),
  Env: Type.Optional(Type.Array(Type.String())),
  Cmd: Type.Optional(Words),
  Entrypoint: Type.Optional(Words),
  Healthcheck: Type.Optional(Healthcheck),
  Image: Type.Optional(Type.String()),
  Volumes: Type.Optional(NameSet),
  WorkingDir: Type.Optional(Type.String()),
  NetworkDisabled: Type.Optional(Type.Boolean()),
  MacAddress: Type.Optional(Type.String()),
  OnBuild: Type.Optional(Type.Array(Type.String())),
  Labels: Type.Optional(Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()]))),
  StopSignal: Type.Optional(Type.Union([Type.String(), Type.Integer()])),
  StopTimeout: Type.Optional(Type.Integer()),
});
export type ContainerConfigBody = Static<typeof ContainerConfigBody>;

/** The settings a container runs with: the body's over the image's. Field names and nulls as in an inspect. */
export const ContainerConfig = Type.Object({
  Hostname: Type.String(),
  Domainname: Type.String(),
  User: Type.String(),
  AttachStdin: Type.Boolean(),
  AttachStdout: Type.Boolean(),
  AttachStderr: Type.Boolean(),
  ExposedPorts: Type.Optional(Type.Record(Type.String(), Type.Object({}))),
  Tty: Type.Boolean(),
  OpenStdin: Type.Boolean(),
  StdinOnce: Type.Boolean(),
  Env: Type.Array(Type.String()),
  Cmd: Type.Union([Type.Array(Type.String()), Type.Null()]),
  Healthcheck: Type.Optional(Healthcheck),
  Image: Type.String(),
  Volumes: Type.Union([Type.Record(Type.String(), Type.Object({})), Type.Null()]),
  WorkingDir: Type.String(),
  Entrypoint: Type.Union([Type.Array(Type.String()), Type.Null()]),
  NetworkDisabled: Type.Optional(Type.Boolean()),
  MacAddress: Type.Optional(Type.String()),
  OnBuild: Type.Union([Type.Array(Type.String()), Type.Null()]),
  Labels: Type.Record(Type.String(), Type.String()),
  StopSignal: Type.Optional(Type.String()),
  StopTimeout: Type.Optional(Type.Integer()),
});
export type ContainerConfig = Static<typeof ContainerConfig>;
