import { EngineError, refuseIf } from '../../../lib/errors.ts';
import type { Privileges } from '../../state/task-template.ts';
import { omitEmpty } from '../omit-empty.ts';
import type { ContainerBody } from './schema.ts';

type Body = NonNullable<ContainerBody['Privileges']>;

export function readPrivileges(body: Body): Privileges {
  if (body.CredentialSpec) refuseCredentials(body.CredentialSpec);
  const seLinux = body.SELinuxContext;
  return omitEmpty({
    seLinux:
      seLinux &&
      omitEmpty({
        disable: seLinux.Disable,
        user: seLinux.User,
        role: seLinux.Role,
        type: seLinux.Type,
        level: seLinux.Level,
      }),
    seccomp: body.Seccomp ? readSeccomp(body.Seccomp) : undefined,
    appArmor: body.AppArmor ? readAppArmor(body.AppArmor.Mode ?? '') : undefined,
    noNewPrivileges: body.NoNewPrivileges,
  });
}

function refuseCredentials({ Config, File, Registry }: NonNullable<Body['CredentialSpec']>): never {
  refuseIf(
    !Config && !File && !Registry,
    'invalid CredentialSpec: must either provide "file", "registry", or "config" for credential spec',
  );
  throw new EngineError('notImplemented', 'Privileges.CredentialSpec is not implemented: it is for Windows');
}

/** The profile comes in base64. */
function readSeccomp({ Mode, Profile }: NonNullable<Body['Seccomp']>): NonNullable<Privileges['seccomp']> {
  const mode = (Mode ?? '') || 'default';
  if (mode !== 'default' && mode !== 'unconfined' && mode !== 'custom') {
    throw new EngineError('invalid', `invalid seccomp mode: "${Mode}"`);
  }
  const profile = Buffer.from(Profile ?? '', 'base64').toString();
  refuseIf(mode === 'custom' && profile === '', 'seccomp mode "custom" needs a profile');
  refuseIf(mode !== 'custom' && profile !== '', `seccomp mode "${mode}" takes no profile`);
  return { mode, ...omitEmpty({ profile }) };
}

function readAppArmor(mode: string): NonNullable<Privileges['appArmor']> {
  if (mode === '' || mode === 'default') return 'default';
  if (mode !== 'disabled') throw new EngineError('invalid', `invalid AppArmor mode: "${mode}"`);
  return mode;
}

/** As dockerd shows it: null for fields that it has known since version 1.30. */
export function presentPrivileges({ seLinux, seccomp, appArmor, noNewPrivileges }: Privileges): object {
  const { disable = false, user = '', role = '', type = '', level = '' } = seLinux ?? {};
  return {
    CredentialSpec: null,
    SELinuxContext: seLinux ? { Disable: disable, User: user, Role: role, Type: type, Level: level } : null,
    ...omitEmpty({
      Seccomp: seccomp && {
        Mode: seccomp.mode,
        ...omitEmpty({ Profile: seccomp.profile && Buffer.from(seccomp.profile).toString('base64') }),
      },
      AppArmor: appArmor && { Mode: appArmor },
      NoNewPrivileges: noNewPrivileges,
    }),
  };
}

/** The security options of a task's container. */
export function securityOptionsOf({ seLinux, seccomp, appArmor, noNewPrivileges }: Privileges): string[] {
  const options = [
    seLinux?.disable === true && 'label=disable',
    seLinux?.user && `label=user:${seLinux.user}`,
    seLinux?.role && `label=role:${seLinux.role}`,
    seLinux?.level && `label=level:${seLinux.level}`,
    seLinux?.type && `label=type:${seLinux.type}`,
    seccomp?.mode === 'unconfined' && 'seccomp=unconfined',
    seccomp?.mode === 'custom' && `seccomp=${seccomp.profile}`,
    appArmor === 'disabled' && 'apparmor=unconfined',
    noNewPrivileges === true && 'no-new-privileges=true',
  ];
  return options.filter((option) => typeof option === 'string').filter(Boolean);
}
