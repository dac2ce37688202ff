import type { Config } from '../../config/daemon-config.ts';

export type ApiVersion = `1.${number}`;

/** The oldest and newest accepted version, and that of requests without a version. */
export type ApiVersions = Readonly<{ min: ApiVersion; max: ApiVersion; fallback: ApiVersion }>;

/** The oldest and the newest that the settings may name. */
export const OLDEST: ApiVersion = '1.12';
export const NEWEST: ApiVersion = '1.55';

const PREFIX = /^\/v([\d.]+)(\/.*)?$/;

export function isBelow(one: ApiVersion, other: ApiVersion): boolean {
  return minorOf(one) < minorOf(other);
}

/** Undefined for anything but a version of this API. */
export function parseApiVersion(text: string): ApiVersion | undefined {
  return /^1\.(0|[1-9]\d*)$/.test(text) ? (text as ApiVersion) : undefined;
}

/** `settings-checks.ts` has checked that the settings are versions. */
export function apiVersionsOf({ minApiVersion, maxApiVersion, defaultApiVersion }: Config): ApiVersions {
  const [min, max, fallback] = [minApiVersion, maxApiVersion, defaultApiVersion] as ApiVersion[];
  return { min: min!, max: max!, fallback: fallback! };
}

/** The path without its version, and the version as the client wrote it. */
export function splitVersion(path: string): { written?: string; path: string } {
  const match = PREFIX.exec(path);
  return match === null ? { path } : { written: match[1]!, path: match[2] ?? '/' };
}

/** The version of a URL as the client sent it. */
export function versionOfUrl(url: string, { fallback }: ApiVersions): ApiVersion {
  const written = writtenVersion(url);
  return written === undefined ? fallback : `1.${partsOf(written).minor}`;
}

export function isSupported(written: string, { min, max }: ApiVersions): boolean {
  return !isOlder(written, min) && !isNewer(written, max);
}

/** The refusal of a version, in dockerd's words. */
export function versionRefusal(written: string, { min, max }: ApiVersions): string {
  return isOlder(written, min)
    ? `client version ${written} is too old. Minimum supported API version is ${min}, please upgrade your client to a newer version`
    : `client version ${written} is too new. Maximum supported API version is ${max}`;
}

function isOlder(written: string, than: ApiVersion): boolean {
  const { major, minor } = partsOf(written);
  return major < 1 || (major === 1 && minor < minorOf(than));
}

function isNewer(written: string, than: ApiVersion): boolean {
  const { major, minor, hasMore } = partsOf(written);
  return major > 1 || (major === 1 && (minor > minorOf(than) || (minor === minorOf(than) && hasMore)));
}

/** As dockerd: `1.24.0` is 1.24, and `1.24.1` is newer. */
function partsOf(written: string): { major: number; minor: number; hasMore: boolean } {
  const [major = 0, minor = 0, ...more] = written.split('.').map(Number);
  return { major, minor, hasMore: more.some((part) => part > 0) };
}

/** The version in the path of a URL. */
export function writtenVersion(url: string): string | undefined {
  const end = url.indexOf('?');
  return splitVersion(end < 0 ? url : url.slice(0, end)).written;
}

function minorOf(version: ApiVersion): number {
  return Number(version.slice(2));
}
