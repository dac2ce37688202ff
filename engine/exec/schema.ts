import { Type, type Static } from 'typebox';

export const ExecId = Type.Object({ id: Type.String() });

/** Height and width of the terminal, in characters; without a terminal it is ignored. */
const ConsoleSize = Type.Array(Type.Integer({ minimum: 0, maximum: 65_535 }));

export const ExecCreateBody = Type.Object({
  AttachStdin: Type.Optional(Type.Boolean()),
  AttachStdout: Type.Optional(Type.Boolean()),
  AttachStderr: Type.Optional(Type.Boolean()),
  DetachKeys: Type.Optional(Type.String()),
  Tty: Type.Optional(Type.Boolean()),
  Cmd: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
  Privileged: Type.Optional(Type.Boolean()),
  User: Type.Optional(Type.String()),
  ConsoleSize: Type.Optional(ConsoleSize),
  Env: Type.Optional(Type.Array(Type.String(), { description: 'Of newer clients' })),
  WorkingDir: Type.Optional(Type.String({ description: 'Of newer clients' })),
});
export type ExecCreateBody = Static<typeof ExecCreateBody>;

export const ExecCreated = Type.Object({ Id: Type.String(), Warnings: Type.Array(Type.String()) });

export const ExecStartBody = Type.Object({
  Detach: Type.Optional(Type.Boolean()),
  Tty: Type.Optional(Type.Boolean()),
  ConsoleSize: Type.Optional(ConsoleSize),
});

export const ExecInspect = Type.Object({
  ID: Type.String(),
  Running: Type.Boolean(),
  ExitCode: Type.Union([Type.Integer(), Type.Null()]),
  ProcessConfig: Type.Object({
    tty: Type.Boolean(),
    entrypoint: Type.String(),
    arguments: Type.Array(Type.String()),
    privileged: Type.Boolean(),
    user: Type.Optional(Type.String()),
  }),
  OpenStdin: Type.Boolean(),
  OpenStderr: Type.Boolean(),
  OpenStdout: Type.Boolean(),
  CanRemove: Type.Boolean(),
  ContainerID: Type.String(),
  DetachKeys: Type.String(),
  Pid: Type.Integer(),
});
export type ExecInspect = Static<typeof ExecInspect>;
