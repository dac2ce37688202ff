import { EngineError, refuseIf } from '../../lib/errors.ts';
import { refuseArgument } from '../services/refuse-argument.ts';
import type { TaskTemplateBody } from '../services/task-template/schema.ts';
import type { SecretReference, TaskTemplate } from '../state/task-template.ts';
import type { View } from '../state/view.ts';
import type { SecretKind } from './kinds.ts';

type Container = NonNullable<TaskTemplateBody['ContainerSpec']>;
type FileBody = NonNullable<NonNullable<NonNullable<Container['Secrets']>[number]>['File']>;
type Written = Readonly<{ id: string; name: string; file: FileBody | null | undefined }>;

/** The references of a container's specification, checked without the records; refusals have dockerd's words. */
export function readReferences({
  Secrets,
  Configs,
}: Container): Pick<TaskTemplate['container'], 'secrets' | 'configs'> {
  const secrets = Secrets?.map((one): Written => ({
    ...{ id: one?.SecretID ?? '', name: one?.SecretName ?? '', file: one?.File },
  }));
  const configs = Configs?.map((one): Written => {
    refuseIf(!one?.File && !one?.Runtime, 'invalid Config: either File or Runtime should be set');
    refuseIf(Boolean(one?.File) && Boolean(one?.Runtime), 'invalid Config: cannot specify both File and Runtime');
    if (one?.Runtime) {
      throw new EngineError('notImplemented', 'a config with a Runtime is not implemented: it is for Windows');
    }
    return { id: one?.ConfigID ?? '', name: one?.ConfigName ?? '', file: one?.File };
  });
  return {
    ...(secrets && secrets.length > 0 && { secrets: checked('secret', secrets) }),
    ...(configs && configs.length > 0 && { configs: checked('config', configs) }),
  };
}

function checked(kind: SecretKind, written: readonly Written[]): SecretReference[] {
  const byTarget = new Map<string, string>();
  return written.map(({ id, name, file }) => {
    refuseArgument(id === '' || name === '', `malformed ${kind} reference`);
    if (!file) throw new EngineError('invalid', `${ARGUMENT} malformed ${kind} reference, no target provided`);
    const { Name: target = '', UID = '', GID = '', Mode = 0 } = file;
    refuseArgument(target === '', `malformed file ${kind} reference, invalid target file name provided`);
    const other = byTarget.get(target);
    refuseArgument(
      other !== undefined,
      `${kind} references '${other}' and '${name}' have a conflicting target: '${target}'`,
    );
    byTarget.set(target, name);
    return { id, name, file: { name: target, uid: UID, gid: GID, mode: Mode } };
  });
}

const ARGUMENT = 'rpc error: code = InvalidArgument desc =';

/** Refuses references to missing objects, and to those of another name. */
export function checkReferences(view: View, template: TaskTemplate): void {
  for (const kind of ['secret', 'config'] as const) {
    const missing = referencesIn(template, kind).filter(({ id, name }) => view.get(kind, id)?.name !== name);
    const noun = missing.length > 1 ? `${kind}s` : kind;
    refuseArgument(missing.length > 0, `${noun} not found: ${missing.map(({ name }) => name).join(', ')}`);
  }
}

export function referencesIn(
  { container }: Pick<TaskTemplate, 'container'>,
  kind: SecretKind,
): readonly SecretReference[] {
  return (kind === 'secret' ? container.secrets : container.configs) ?? [];
}

/** Ids of the secrets or configs that the tasks of a template get. */
export function referencesTo(template: Pick<TaskTemplate, 'container'>, kind: SecretKind): string[] {
  return referencesIn(template, kind).map(({ id }) => id);
}

/** `Secrets` and `Configs` of a container's specification, as the API shows them. */
export function presentReferences({ secrets, configs }: TaskTemplate['container']): object {
  return {
    ...(secrets && {
      Secrets: secrets.map(({ id, name, file }) => ({ File: presentFile(file), SecretID: id, SecretName: name })),
    }),
    ...(configs && {
      Configs: configs.map(({ id, name, file }) => ({ File: presentFile(file), ConfigID: id, ConfigName: name })),
    }),
  };
}

function presentFile({ name, uid, gid, mode }: SecretReference['file']): object {
  return { Name: name, UID: uid, GID: gid, Mode: mode };
}
