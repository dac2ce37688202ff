import { docker, normalised, type Side } from '../both-engines.ts';
import type { Row } from './run-flags.ts';

/** The output and the result of a command line; `inspect` is the status of the answer if there is no container. */
export type Outcome = Readonly<{ code: number; stdout: string; stderr: string; inspect: unknown }>;

/** The containers that rows name. */
export async function makeOthers(side: Side): Promise<void> {
  const lent = ['-v', '/lent', '-v', '{dir}/folder:/bound', '--name', 'lender', 'busybox', 'true'];
  await docker(side, ['create', '--network', 'none', ...lent]);
  await docker(side, ['run', '-d', '--name', 'running', 'busybox', 'sleep', '1000']);
}

/** Runs the row in a container of this name, and inspects the result. */
export async function runRow(side: Side, name: string, { command, flags, words }: Row): Promise<Outcome> {
  const network = flags.some((flag) => flag.startsWith('--net')) ? [] : ['--network', 'none'];
  const said = await docker(side, [command, '--name', name, ...network, ...flags, ...words]);
  const { status, body } = await side.api.get(`/containers/${name}/json`);
  const inspect = status === 200 ? (JSON.parse(normalised(side, JSON.stringify(body))) as unknown) : status;
  await side.api.delete(`/containers/${name}?force=1&v=1`);
  return {
    code: said.code,
    stdout: normalised(side, said.stdout),
    stderr: normalised(side, said.stderr),
    inspect,
  };
}
