import { existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { InstallError, quoted, refuseForeign, write, type Machine } from './systemd-units.ts';

const FOLDER = '/etc/systemd/system';
const SOCKET = 'gantry.socket';
const SERVICE = 'gantry.service';
const UNITS = [SOCKET, SERVICE];
const MARK = '# written by ./gantry install';

const gantry = dirname(dirname(import.meta.dirname));

/** Makes the container engine a service of systemd, with its socket. Returns a report, with the steps left to do. */
export function installEngine(root: string | undefined, { isRoot, hasSystemd, systemctl }: Machine): string {
  if (root === undefined) {
    if (!hasSystemd) {
      throw new InstallError(
        `systemd does not run here. Have your own supervisor run this as root, and send it SIGHUP to reload and SIGTERM to end; containers go on:\n  ${join(gantry, 'gantry')} daemon`,
      );
    }
    if (!isRoot) throw new InstallError('to install a service needs root (or --root FOLDER)');
  }
  const files = pathsBelow(root);
  for (const file of files) refuseForeign(file, MARK);
  for (const [index, file] of files.entries()) write(file, unitText(UNITS[index]!));
  const said = `written: ${files.join(', ')}`;
  if (root !== undefined) return `${said}\nthen: systemctl enable --now ${UNITS.join(' ')}`;
  systemctl('daemon-reload');
  systemctl('enable', ...UNITS);
  systemctl('restart', ...UNITS);
  return `${said}\n${SERVICE} runs; its log: journalctl -u ${SERVICE}`;
}

/** Containers keep running, and the daemon's data stays. */
export function uninstallEngine(root: string | undefined, { isRoot, hasSystemd, systemctl }: Machine): string {
  if (root === undefined && !isRoot) throw new InstallError('to remove a service needs root (or --root FOLDER)');
  const files = pathsBelow(root).filter((file) => existsSync(file));
  if (files.length === 0) return `there is no ${pathsBelow(root).join(', ')}`;
  for (const file of files) refuseForeign(file, MARK);
  const tellsSystemd = root === undefined && hasSystemd;
  if (tellsSystemd) systemctl('disable', '--now', ...UNITS);
  for (const file of files) rmSync(file);
  if (tellsSystemd) systemctl('daemon-reload');
  return `removed: ${files.join(', ')}; /var/lib/gantry and /etc/gantry stay`;
}

function pathsBelow(root = '/'): string[] {
  return UNITS.map((unit) => join(root, FOLDER, unit));
}

/** The unit of `packaging/`, for this folder. */
function unitText(unit: string): string {
  const text = readFileSync(join(gantry, 'packaging', unit), 'utf8');
  const here = text
    .replaceAll('/opt/gantry/gantry', () => quoted(join(gantry, 'gantry')))
    .replaceAll('/opt/gantry', () => gantry.replaceAll('%', '%%').replaceAll(' ', '%20'));
  return `${MARK}\n${here}`;
}
