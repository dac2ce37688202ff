import { Type, type Static } from 'typebox';

import { chainIds } from '../../layers/chain-id.ts';
import { EngineError } from '../../lib/errors.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import { refuseManyLabels } from '../../records/labels.ts';
import type { Image } from '../store.ts';
import type { HistoryEntry, ImageConfig } from './image-config.ts';
import type { ParsedSettings } from './parsed-settings.ts';

const maybe = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
const Words = Type.Union([Type.Array(Type.String()), Type.String()]);
const Names = Type.Record(Type.String(), Type.Unknown());

const ConfigJson = Type.Object({
  User: maybe(Type.String()),
  ExposedPorts: maybe(Names),
  Env: maybe(Type.Array(Type.String())),
  Cmd: maybe(Words),
  Entrypoint: maybe(Words),
  Healthcheck: maybe(
    Type.Object({
      Test: maybe(Type.Array(Type.String())),
      Interval: maybe(Type.Integer()),
      Timeout: maybe(Type.Integer()),
      StartPeriod: maybe(Type.Integer()),
      Retries: maybe(Type.Integer()),
    }),
  ),
  Volumes: maybe(Names),
  WorkingDir: maybe(Type.String()),
  OnBuild: maybe(Type.Array(Type.String())),
  Labels: maybe(Type.Record(Type.String(), Type.String())),
  StopSignal: maybe(Type.String()),
  Shell: maybe(Type.Array(Type.String())),
});
type ConfigJson = Static<typeof ConfigJson>;

const HistoryJson = Type.Object({
  created: maybe(Type.String()),
  created_by: maybe(Type.String()),
  author: maybe(Type.String()),
  comment: maybe(Type.String()),
  empty_layer: maybe(Type.Boolean()),
});

const ImageJson = Type.Object({
  architecture: maybe(Type.String()),
  variant: maybe(Type.String()),
  os: maybe(Type.String()),
  author: maybe(Type.String()),
  comment: maybe(Type.String()),
  container: maybe(Type.String()),
  created: maybe(Type.String()),
  docker_version: maybe(Type.String()),
  config: maybe(ConfigJson),
  container_config: maybe(ConfigJson),
  rootfs: Type.Object({
    type: Type.Literal('layers'),
    diff_ids: maybe(Type.Array(Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }), { maxItems: 127 })),
  }),
  history: maybe(Type.Array(HistoryJson)),
});
type ImageJson = Static<typeof ImageJson>;

const checked = lazyCheck(ImageJson);

type Parsed = Omit<Image, 'id' | 'parentId' | 'sizeBytes' | keyof ParsedSettings> &
  Readonly<{ settings: ParsedSettings }>;

/** Reads the configuration of an image that arrives. Throws `invalid` for one that costs each event and list too much. */
export function parseNewImage(json: unknown): Parsed {
  const parsed = parseImage(json);
  refuseManyLabels(parsed.labels, 'the image');
  return parsed;
}

/** Reads an image's configuration, Docker's or OCI's. Throws `invalid` for anything else. */
export function parseImage(json: unknown): Parsed {
  if (!checked.Check(json)) {
    const [, errors] = checked.Errors(json);
    const { instancePath = '', message = '' } = errors[0] ?? {};
    throw new EngineError('invalid', `invalid image configuration: ${instancePath || 'it'} ${message}`);
  }
  const image: ImageJson = json;
  const diffIds = image.rootfs.diff_ids ?? [];
  return {
    settings: settingsOf(image),
    labels: image.config?.Labels ?? null,
    stepCommand: words(image.container_config?.Cmd),
    layers: chainIds(diffIds),
    diffIds,
    createdAt: parseTime(image.created),
    architecture: image.architecture ?? '',
    variant: image.variant ?? '',
    os: image.os ?? '',
    author: image.author ?? '',
    comment: image.comment ?? '',
    container: image.container ?? '',
    engineVersion: image.docker_version ?? '',
  };
}

function settingsOf(image: ImageJson): ParsedSettings {
  return {
    config: parseConfig(image.config ?? {}),
    wireConfig: image.config ?? {},
    wireContainerConfig: image.container_config ?? {},
    history: (image.history ?? []).map((entry): HistoryEntry => ({
      created: parseTime(entry.created),
      createdBy: entry.created_by ?? '',
      author: entry.author ?? '',
      comment: entry.comment ?? '',
      emptyLayer: entry.empty_layer ?? false,
    })),
  };
}

function parseConfig(json: ConfigJson): ImageConfig {
  const { Healthcheck } = json;
  return {
    User: json.User ?? '',
    ExposedPorts: objects(json.ExposedPorts),
    Env: json.Env ?? [],
    Cmd: words(json.Cmd),
    Entrypoint: words(json.Entrypoint),
    ...(Healthcheck && {
      Healthcheck: {
        Test: Healthcheck.Test ?? [],
        Interval: Healthcheck.Interval ?? 0,
        Timeout: Healthcheck.Timeout ?? 0,
        StartPeriod: Healthcheck.StartPeriod ?? 0,
        Retries: Healthcheck.Retries ?? 0,
      },
    }),
    Volumes: objects(json.Volumes),
    WorkingDir: json.WorkingDir ?? '',
    OnBuild: json.OnBuild ?? [],
    Labels: json.Labels ?? {},
    StopSignal: json.StopSignal ?? '',
    Shell: json.Shell ?? [],
  };
}

function words(value: string | string[] | null | undefined): string[] {
  if (value === null || value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

function objects(value: Record<string, unknown> | null | undefined): Record<string, object> {
  return Object.fromEntries(Object.keys(value ?? {}).map((key) => [key, {}]));
}

/** Go writes year 1 for "not set"; an unreadable time counts as not set. */
function parseTime(text: string | null | undefined): Temporal.Instant | undefined {
  if (text === null || text === undefined || text.startsWith('0001-')) return undefined;
  try {
    return Temporal.Instant.from(text);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
