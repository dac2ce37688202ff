import { posix } from 'node:path';

import type { MemoryFile } from '../../containers/runs/preparation/memory-files.ts';
import type { Container } from '../../containers/store.ts';
import { EngineError } from '../../lib/errors.ts';
import { SECRET_KINDS, type SecretKind } from '../secrets/kinds.ts';
import type { SecretReference } from '../state/task-template.ts';
import type { NodeTemplate } from '../wire/task-messages.ts';
import { expandTemplate, type Expansion } from './expand-template.ts';
import type { AgentNeeds } from './needs.ts';
import type { AgentTask, TaskStore } from './store.ts';
import type { TaskFiles } from './task-files.ts';

type File = Readonly<{ kind: SecretKind; reference: SecretReference; data: Buffer; expansion: Expansion | undefined }>;

/** A client may wait for the start. */
const TIMEOUT_MS = 30_000;
const TASK_LABEL = 'com.docker.swarm.task.id';
const PERMISSIONS = 0o777;
const MAX_ID = 0x7f_ff_ff_ff;

/** Whether a task gets secrets or configs. */
export function hasFiles({ container }: NodeTemplate): boolean {
  return references(container).length > 0;
}

/** Returns the secrets and configs of a task's container. They come from the leader at each start: the node keeps none. */
export async function filesOf(
  { clock }: AgentNeeds,
  { tasks, files }: Readonly<{ tasks: TaskStore; files: TaskFiles }>,
  { config }: Container,
): Promise<MemoryFile[]> {
  const task = tasks.get(config.Labels?.[TASK_LABEL] ?? '');
  if (task === undefined) throw new EngineError('unavailable', 'the task of the container is gone');
  const late = new AbortController();
  using _timer = clock.after(TIMEOUT_MS, () =>
    late.abort(new EngineError('unavailable', 'no manager has sent the secrets and configs of the container')),
  );
  const all = await bring(files, task, late.signal);
  const dataOf = (kind: SecretKind, target: string): Buffer | undefined =>
    all.find((file) => file.kind === kind && file.reference.file.name === target)?.data;
  return all.map(({ kind, reference: { id, file }, data, expansion }) => ({
    target: targetOf(kind, file.name),
    uid: idOf(file.uid),
    gid: idOf(file.gid),
    mode: file.mode & PERMISSIONS,
    content: expansion === undefined ? data : expandTemplate({ task, kind, id, data, expansion, dataOf }),
  }));
}

async function bring(files: TaskFiles, task: AgentTask, signal: AbortSignal): Promise<File[]> {
  const brought: File[] = [];
  for (const { kind, reference } of references(task.made?.container ?? {})) {
    const { data, templating } = await files.get({ task: task.id, kind, id: reference.id }, signal);
    brought.push({ kind, reference, data: Buffer.from(data, 'base64'), expansion: templating });
  }
  return brought;
}

function references(container: Partial<NodeTemplate['container']>): Pick<File, 'kind' | 'reference'>[] {
  const { secrets = [], configs = [] } = container;
  return [
    ...secrets.map((reference) => ({ kind: 'secret', reference }) as const),
    ...configs.map((reference) => ({ kind: 'config', reference }) as const),
  ];
}

function targetOf(kind: SecretKind, name: string): string {
  const target = posix.isAbsolute(name) ? posix.normalize(name) : posix.join(SECRET_KINDS[kind].folder, name);
  if (target.endsWith('/')) throw new EngineError('invalid', `the target ${name} of a ${kind} is a folder`);
  return target;
}

function idOf(text: string): number {
  if (/^\d{1,10}$/.test(text) && Number(text) <= MAX_ID) return Number(text);
  throw new EngineError('invalid', `strconv.Atoi: parsing "${text}": invalid syntax`);
}
