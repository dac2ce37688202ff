import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { USER_BRIDGE_PREFIX } from '../bridge-settings.ts';

const execute = promisify(execFile);

/**
 * Opens forwarding where the older kernel interface of iptables is in use: nftables cannot see its rules, so its
 * own program has to run. Costs a spawn per rule, so it runs only when the rules have changed.
 */
export async function admitLegacyForwarding(bridge: string): Promise<void> {
  for (const rule of rules(bridge)) {
    if (await iptables('-C', rule)) continue;
    if (!(await iptables('-I', rule))) throw new Error(`iptables-legacy refused ${rule.join(' ')}`);
  }
}

/** Removes the accepting rules. */
export async function dropLegacyForwarding(bridge: string): Promise<void> {
  for (const rule of rules(bridge)) await iptables('-D', rule);
}

function rules(name: string): string[][] {
  const bridge = name.startsWith(USER_BRIDGE_PREFIX) ? `${USER_BRIDGE_PREFIX}+` : name;
  return [
    ['FORWARD', '-i', bridge, '-j', 'ACCEPT'],
    ['FORWARD', '-o', bridge, '-j', 'ACCEPT'],
  ];
}

/** `false`: the rule does not exist, or was refused. */
async function iptables(action: string, rule: readonly string[]): Promise<boolean> {
  try {
    await execute('iptables-legacy', ['-w', action, ...rule]);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && (typeof error.code === 'number' || error.code === 'ENOENT')) {
      return false;
    }
    throw error;
  }
}
