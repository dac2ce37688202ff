import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/**
 * The same admission for machines where somebody still uses the older kernel interface of iptables: nftables cannot
 * see its rules, so its own program has to be asked. Costs a spawn per rule: only for when the rules have changed.
 */
export async function admitLegacyForwarding(bridge: string): Promise<void> {
  for (const rule of rules(bridge)) {
    if (await iptables('-C', rule)) continue;
    if (!(await iptables('-I', rule))) throw new Error(`iptables-legacy refused ${rule.join(' ')}`);
  }
}

/** Takes the admission back. */
export async function dropLegacyForwarding(bridge: string): Promise<void> {
  for (const rule of rules(bridge)) await iptables('-D', rule);
}

function rules(bridge: string): string[][] {
  return [
    ['FORWARD', '-i', bridge, '-j', 'ACCEPT'],
    ['FORWARD', '-o', bridge, '-j', 'ACCEPT'],
  ];
}

/** `false`: the rule is not there, or was refused. */
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
