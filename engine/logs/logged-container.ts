import type { LogOptions } from './driver.ts';

/** A container as its log needs it. */
export type LoggedContainer = Readonly<{
  id: string;
  /** Without the leading slash. */
  name: string;
  path: string;
  args: readonly string[];
  imageId: string;
  imageName: string;
  createdAt: Temporal.Instant;
  /** Empty without a file. */
  logPath: string;
  config: Readonly<{ Env: readonly string[]; Labels?: Readonly<Record<string, string>> }>;
  hostConfig: Readonly<{ LogConfig: LogConfig }>;
}>;

export type LogConfig = Readonly<{ Type: string; Config: LogOptions }>;
