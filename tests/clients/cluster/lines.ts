import { hostname } from 'node:os';

import { eventually } from '@gantry/testing/eventually.ts';

import { docker, normalised, type CommandLine, type Said, type Side } from '../both-engines.ts';

/** `wait SERVICE STATE COUNT` */
export async function wait(side: Side, line: string): Promise<Said> {
  type Task = { Status: { State: string; Err?: string }; DesiredState: string };
  const [, service = '', state, count] = line.split(' ');
  const filters = encodeURIComponent(JSON.stringify({ service: [service] }));
  let seen = '';
  await eventually(`${side.name}: ${line}`, async () => {
    const { body } = await side.api.get<Task[]>(`/tasks?filters=${filters}`);
    seen = JSON.stringify(body.map(({ Status, DesiredState }) => [DesiredState, Status]));
    const found = body.filter(({ Status, DesiredState }) => {
      const isMeant = state !== 'running' || DesiredState === 'running' || DesiredState === 'complete';
      return isMeant && Status.State === state && (state !== 'pending' || Boolean(Status.Err));
    });
    if (found.length !== Number(count)) throw new Error(seen);
    return true;
  });
  return { code: 0, stdout: '', stderr: '' };
}

/** A word in quotes is one; a line may end with ` | grep WORD`, which keeps the lines that have it. */
export async function run(side: Side, line: string, program?: CommandLine): Promise<Said> {
  const [command = '', word] = line.replaceAll('{host}', hostname()).split(' | grep ');
  const words = (command.match(/(?:'[^']*'|\{\{[^}]*\}\}|[^\s'])+/g) ?? []).map((one) => one.replaceAll("'", ''));
  const { code, stdout, stderr } = await docker(side, words, program);
  const kept = (text: string): string =>
    neutral(side, text)
      .split('\n')
      .filter((one) => word === undefined || one.includes(word))
      .join('\n');
  return { code, stdout: kept(stdout), stderr: kept(stderr) };
}

/** Without ids, secrets and times; rows of tasks in the order of their text. */
function neutral(side: Side, text: string): string {
  return (
    normalised(side, text)
      .replaceAll(/SWMTKN-1-\w+-\w+/g, '<token>')
      .replaceAll(/SWMKEY-1-[\w+/]+/g, '<key>')
      .replaceAll(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g, '<certificate>')
      .replaceAll(/\b(?=[0-9a-z]*\d)[0-9a-z]{25}\b/g, '<cluster id>')
      .replaceAll(/(?:less than a|about an?|\d+) (?:second|minute)s? ago/gi, '<time> ago')
      // dockerd asks the registry for the digest, and docker's command line sends more to newer versions of the API.
      .replaceAll(/image \S+ could not be accessed on a registry to record\n[^]*?\n\n/g, '')
      .replaceAll(/"Init":false,|,"DNSConfig":\{\}|,"Isolation":"default"|,"Runtime":"container"/g, '')
      .replaceAll(/^ Init:\t\tfalse\n/gm, '')
      .replaceAll(/\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z| \+0000 UTC)/g, '<time>')
  );
}
