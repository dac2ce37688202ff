import { execFile } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { promisify } from 'node:util';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { withNetns } from '@gantry/engine/host/namespaces.ts';
import { listAddresses } from '@gantry/engine/host/network/addresses.ts';
import { getLink } from '@gantry/engine/host/network/links.ts';
import { Netlink } from '@gantry/engine/host/network/netlink.ts';

import type { TestEngine } from '../test-engine.ts';
import { RawLink } from './raw-frames.ts';

const execute = promisify(execFile);

/** The name of the link with an address. */
function linkWith(netns: number, ip: string): string {
  return withNetns(netns, () => {
    using route = new Netlink();
    const address = listAddresses(route).find((one) => one.ip === ip);
    return getLink(route, address!.link).name;
  });
}

/** A container in one network, whose frames a test writes and reads as a program with CAP_NET_RAW in it could. */
export class RawContainer implements Disposable {
  readonly id: string;
  readonly pid: number;
  readonly link: RawLink;
  readonly ip: string;
  readonly ipv6: string;
  readonly gateway: string;
  readonly gateway6: string;

  private constructor(id: string, network: string, { State, NetworkSettings }: Inspect) {
    const place = NetworkSettings.Networks[network];
    this.id = id;
    this.pid = State.Pid;
    this.ip = place!.IPAddress;
    this.ipv6 = place!.GlobalIPv6Address;
    this.gateway = place!.Gateway;
    this.gateway6 = place!.IPv6Gateway;
    const netns = openSync(`/proc/${State.Pid}/ns/net`, 'r');
    try {
      this.link = new RawLink(netns, linkWith(netns, this.ip));
    } finally {
      closeSync(netns);
    }
  }

  static async run(engine: TestEngine, NetworkMode: string, body: object = {}, name?: string): Promise<RawContainer> {
    const id = await engine.run(['sleep', 'infinity'], { HostConfig: { NetworkMode }, ...body }, name);
    return new RawContainer(id, NetworkMode, (await engine.get<Inspect>(`/containers/${id}/json`)).body);
  }

  /** The output of a command of the machine in the container's network namespace. */
  async inside(...command: string[]): Promise<string> {
    return (await execute('nsenter', ['-t', String(this.pid), '-n', ...command])).stdout;
  }

  [Symbol.dispose](): void {
    this.link[Symbol.dispose]();
  }
}
