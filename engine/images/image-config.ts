import type { Healthcheck } from '../containers/settings/container-config-schema.ts';

/** What an image says about the containers made of it. Lists and maps are never null here. */
export type ImageConfig = Readonly<{
  User: string;
  ExposedPorts: Readonly<Record<string, object>>;
  Env: readonly string[];
  Cmd: readonly string[];
  Entrypoint: readonly string[];
  Healthcheck?: Healthcheck;
  Volumes: Readonly<Record<string, object>>;
  WorkingDir: string;
  OnBuild: readonly string[];
  Labels: Readonly<Record<string, string>>;
  StopSignal: string;
  /** The words before a command in shell form. */
  Shell: readonly string[];
}>;

/** One step of an image's making. A step without files has no layer. */
export type HistoryEntry = Readonly<{
  created: Temporal.Instant | undefined;
  createdBy: string;
  author: string;
  comment: string;
  emptyLayer: boolean;
}>;
