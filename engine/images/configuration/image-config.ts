import type { Healthcheck } from '../../records/healthcheck.ts';

/** An image's defaults for its containers. Lists and maps are never null here. */
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
  /** The command that runs a command in shell form. */
  Shell: readonly string[];
}>;

/** One step of an image's history. A step that changed no files has no layer. */
export type HistoryEntry = Readonly<{
  created: Temporal.Instant | undefined;
  createdBy: string;
  author: string;
  comment: string;
  emptyLayer: boolean;
}>;
