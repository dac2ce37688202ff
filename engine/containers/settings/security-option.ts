import type { HostConfig } from './host-config/host-config-schema.ts';

/** The value of a `SecurityOpt` such as `seccomp=unconfined` or `no-new-privileges`; '' where it has none. */
export function securityOption({ SecurityOpt }: HostConfig, name: string): string | undefined {
  for (const option of SecurityOpt ?? []) {
    const match = /^([^=:]+)(?:[=:]([\s\S]*))?$/.exec(option);
    if (match?.[1] === name && match[2] !== 'false') return match[2] ?? '';
  }
  return undefined;
}
