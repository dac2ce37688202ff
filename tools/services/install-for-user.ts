import { existsSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { InstallError, quoted, refuseForeign, write, type Machine } from './systemd-units.ts';

const SERVICE = 'gantry.service';
const MARK = '# written by ./gantry install --user';

const gantry = dirname(dirname(import.meta.dirname));

/** Makes the engine a service of this user's systemd, without root. `folder`: that of the user's settings. */
export function installForUser(folder: string, { isRoot, hasSystemd, systemctl }: Machine): string {
  if (isRoot) throw new InstallError('--user is for users that are not root');
  if (!hasSystemd) {
    throw new InstallError(
      `systemd does not run here. Have your own supervisor run this as yourself, and send it SIGTERM to end; containers go on:\n  ${join(gantry, 'gantry')} daemon`,
    );
  }
  const unit = join(folder, 'systemd/user', SERVICE);
  refuseForeign(unit, MARK);
  write(unit, unitText());
  systemctl('daemon-reload');
  systemctl('enable', SERVICE);
  systemctl('restart', SERVICE);
  return `written: ${unit}\n${SERVICE} runs; its log: journalctl --user -u ${SERVICE}\nto keep it without a login, as root: loginctl enable-linger USER`;
}

/** Containers keep running, and the daemon's data stays. */
export function uninstallForUser(folder: string, { hasSystemd, systemctl }: Machine): string {
  const unit = join(folder, 'systemd/user', SERVICE);
  if (!existsSync(unit)) return `there is no ${unit}`;
  refuseForeign(unit, MARK);
  if (hasSystemd) systemctl('disable', '--now', SERVICE);
  rmSync(unit);
  if (hasSystemd) systemctl('daemon-reload');
  return `removed: ${unit}; ~/.local/share/gantry stays`;
}

function unitText(): string {
  return `${MARK}
[Unit]
Description=Gantry container engine of a user

[Service]
ExecStart=${quoted(join(gantry, 'gantry'))} daemon
ExecReload=/bin/kill -HUP $MAINPID
# A stop or restart ends the daemon alone: its keeper, containers and their shims go on, and the next daemon finds them.
KillMode=process
Restart=always
RestartSec=1
TimeoutStopSec=120

[Install]
WantedBy=default.target
`;
}
