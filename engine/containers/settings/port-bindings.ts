import { EngineError } from '../../lib/errors.ts';
import type { HostConfig, HostConfigBody } from './host-config/host-config-schema.ts';

/** A client's bindings by their ports in one form. Throws `invalid`. */
export function portBindingsOf({ PortBindings = {} }: HostConfigBody): HostConfig['PortBindings'] {
  const complete: HostConfig['PortBindings'] = {};
  for (const [port, bindings] of Object.entries(PortBindings)) {
    complete[portKey(port)] = (bindings ?? []).map(({ HostIp = '', HostPort = '' }) => {
      if (!/^(\d{1,5}(-\d{1,5})?)?$/.test(HostPort) || HostPort.split('-').some((port) => Number(port) > 65_535))
        throw new EngineError('invalid', `invalid port specification: "${HostPort}"`);
      return { HostIp, HostPort };
    });
  }
  return complete;
}

/** `80` and `80/tcp` mean the same. Throws `invalid`. */
export function portKey(port: string): string {
  const match = /^(\d{1,5})(?:\/(tcp|udp|sctp))?$/i.exec(port);
  if (match === null || Number(match[1]) > 65_535 || Number(match[1]) === 0) {
    throw new EngineError('invalid', `invalid port specification: "${port}"`);
  }
  return `${Number(match[1])}/${(match[2] ?? 'tcp').toLowerCase()}`;
}
