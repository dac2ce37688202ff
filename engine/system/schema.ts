import { Type, type Static } from 'typebox';

export const Version = Type.Object({
  Version: Type.String(),
  ApiVersion: Type.String(),
  MinAPIVersion: Type.String(),
  GitCommit: Type.String(),
  GoVersion: Type.String({ description: 'What the daemon is written in: Node here' }),
  Os: Type.String(),
  Arch: Type.String(),
  KernelVersion: Type.String(),
  BuildTime: Type.String(),
  Experimental: Type.Boolean(),
});
export type Version = Static<typeof Version>;

export type Info = Readonly<Record<string, unknown>>;
