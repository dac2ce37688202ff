import type { ApiVersion } from '@gantry/engine/http/versions/api-version.ts';

/** A version from which the expected status or content type differs. */
type Era = Readonly<{ status?: number; type?: string }>;

/** The parts of a request besides its method and path. */
export type Extra = {
  /** A text or bytes are sent unchanged, anything else as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
  /** The content type of an answer that is not JSON. */
  type?: string;
  /** A refusal that leaves its mark: a start that failed is told by inspect and events. */
  changes?: true;
  /** The status from 1.25 on. */
  newer?: number;
  /** Expectations by the version from which they hold. */
  eras?: Readonly<Record<ApiVersion, Era>>;
  /** The first version at which the request is sent. */
  since?: ApiVersion;
  /** The first version at which the request is no longer sent. */
  until?: ApiVersion;
  /** The answer takes seconds: sent at the first version alone. */
  slow?: true;
};

/** The status, why it is that one, and the path that brings it about; `{exec}` and so on stand for ids of the world. */
export type Case = readonly [status: number, why: string, path: string, extra?: Extra];

export type StatusRow = Readonly<{
  /** In the order of the specification. */
  statuses: readonly number[];
  cases: readonly Case[];
  /** Listed statuses that no request brings about, with the reason. A 500 needs none: it is a failure. */
  never?: Readonly<Record<number, string>>;
}>;

/** By the name of the endpoint. */
export type StatusRows = Readonly<Record<string, StatusRow>>;

export const JSON_TYPE = { 'Content-Type': 'application/json' };
export const UPGRADE = { Connection: 'Upgrade', Upgrade: 'tcp' };
const raw = 'application/vnd.engine.raw-stream';
/** A stream as it is, and one with frames; older clients see no difference. */
export const RAW = { type: raw, eras: { '1.42': { type: 'application/vnd.docker.raw-stream' } } } as const;
export const FRAMED = { type: raw, eras: { '1.42': { type: 'application/vnd.docker.multiplexed-stream' } } } as const;
export const TEXT = 'text/plain';
export const TAR = 'application/x-tar';

/** Why no request of the table brings a status about: it takes a cluster, and the tests of that ask for it. */
export const OF_MEMBERS = 'engine/cluster asks it of members of a cluster';

export const filters = (value: unknown): string => `filters=${encodeURIComponent(JSON.stringify(value))}`;

/** A path whose container, image … there is not, and the answer to it. */
export const unknown = (path: string, extra?: Extra): Case => [404, 'there is no such object', path, extra];
