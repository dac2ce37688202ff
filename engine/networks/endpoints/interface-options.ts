import { writeFileSync } from 'node:fs';

import { withNetns } from '../../host/namespaces.ts';
import { EngineError, hasCode, refuseIf } from '../../lib/errors.ts';

const NAME_OPTION = 'com.docker.network.endpoint.ifname';
const SYSCTLS_OPTION = 'com.docker.network.endpoint.sysctls';

/** A setting of the kernel for one interface: `net.ipv4.conf.<interface>.log_martians`. */
type InterfaceSysctl = Readonly<{ family: string; group: string; key: string; value: string }>;

/** A client's settings for the interface of an endpoint, whichever driver makes it. */
export type InterfaceOptions = Readonly<{
  /** Default: the first free one. */
  interfaceName?: string;
  sysctls?: readonly InterfaceSysctl[];
}>;

/** Reads DriverOpts of an endpoint. Throws `invalid`. */
export function interfaceOptions(options: Readonly<Record<string, string>> = {}): InterfaceOptions {
  const { [NAME_OPTION]: name = '', [SYSCTLS_OPTION]: sysctls } = options;
  if (name !== '') checkInterfaceName(NAME_OPTION, name);
  return {
    ...(name !== '' && { interfaceName: name }),
    ...(sysctls !== undefined && { sysctls: sysctls.split(',').map(parseSysctl) }),
  };
}

/** Names as the kernel takes them. Throws `invalid`. */
export function checkInterfaceName(option: string, name: string): void {
  const isName = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,14}$/.test(name) && !['lo', 'all', 'default'].includes(name);
  refuseIf(!isName, `${option}: ${name} is not a valid interface name: 1 to 15 letters, digits, _ . -, not lo`);
}

/** Takes `ifname` too: docker's command line writes options of networks in lower case. */
function parseSysctl(text: string): InterfaceSysctl {
  const [, family = '', group = '', key = '', value = ''] =
    /^net\.(ipv4|ipv6|mpls)\.([a-z0-9_-]+)\.(?:IFNAME|ifname)\.([A-Za-z0-9_-]+)=(.*)$/s.exec(text.trim()) ?? [];
  const form = "represent 'net.X.Y.ethN.Z=V' as 'net.X.Y.IFNAME.Z=V', 'X' must be 'ipv4', 'ipv6' or 'mpls'";
  refuseIf(family === '', `unrecognised network interface sysctl '${text}'; ${form}`);
  return { family, group, key, value };
}

/** Sets an interface's settings in the namespace of its container. Throws `failed` for those that the kernel refuses. */
export function applySysctls(netns: number, link: string, { sysctls = [] }: InterfaceOptions): void {
  if (sysctls.length > 0) withNetns(netns, () => sysctls.forEach((one) => applySysctl(link, one)));
}

function applySysctl(link: string, { family, group, key, value }: InterfaceSysctl): void {
  const path = `/proc/sys/net/${family}/${group}/${link}/${key}`;
  try {
    writeFileSync(path, value, { flag: 'r+' });
  } catch (error) {
    if (hasCode(error, 'ENOENT')) throw new EngineError('failed', `${path} is not a sysctl file`, { cause: error });
    const isRefused = ['EINVAL', 'EACCES', 'EPERM', 'ERANGE'].some((code) => hasCode(error, code));
    if (!isRefused) throw error;
    throw new EngineError('failed', `the kernel refuses ${value} for ${path}`, { cause: error });
  }
}
