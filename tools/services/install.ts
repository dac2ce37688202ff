/**
 * Makes the engine or the gateway a service of systemd, or removes it: `./gantry install`, `./gantry uninstall
 * gateway`.
 *
 * `--root FOLDER` writes below another root, such as that of an image, and starts nothing.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';

import { installEngine, uninstallEngine } from './install-engine.ts';
import { installForUser, uninstallForUser } from './install-for-user.ts';
import { InstallError, quoted, refuseForeign, write, type Machine } from './systemd-units.ts';

const UNIT = '/etc/systemd/system/gantry-gateway.service';
const CONFIG = '/etc/gantry/gateway.yaml';
const SERVICE = 'gantry-gateway.service';
/** A unit without this line was not written by Gantry. */
const MARK = '# written by ./gantry install gateway';

const CONFIG_EXAMPLE = `# The rate-limit gateway: docs/gateway-settings.md lists all settings. After a change: systemctl reload ${SERVICE}
listen: 127.0.0.1:8080
upstream: http://127.0.0.1:3000
store: { kind: sqlite, path: /var/lib/gantry-gateway/limits.db }
admin: { socket: /run/gantry-gateway/admin.sock }
`;

const gantry = dirname(dirname(import.meta.dirname));

if (import.meta.main) {
  try {
    const [action = '', name = '', ...args] = process.argv.slice(2);
    const { values } = parseArgs({ args, options: { root: { type: 'string' }, user: { type: 'boolean' } } });
    if (values.user === true) console.log(ofUser(action, name));
    else {
      const [add, remove] = name === 'gateway' ? [install, uninstall] : [installEngine, uninstallEngine];
      console.log((action === 'install' ? add : remove)(values.root, thisMachine()));
    }
  } catch (error) {
    if (!(error instanceof InstallError || (error instanceof Error && 'code' in error))) throw error;
    console.error(`gantry: ${error.message}`);
    process.exitCode = 1;
  }
}

function ofUser(action: string, name: string): string {
  if (name === 'gateway') throw new InstallError('--user is for the engine alone');
  const folder = process.env['XDG_CONFIG_HOME'] ?? join(homedir(), '.config');
  return (action === 'install' ? installForUser : uninstallForUser)(folder, thisMachine('--user'));
}

/** `words`: those before the command of systemctl. */
function thisMachine(...words: string[]): Machine {
  return {
    isRoot: process.getuid?.() === 0,
    hasSystemd: existsSync('/run/systemd/system'),
    systemctl: (...args) => {
      const { status, error } = spawnSync('systemctl', [...words, ...args], { stdio: 'inherit' });
      if (status !== 0) throw new InstallError(error?.message ?? `systemctl ${args.join(' ')} has failed`);
    },
  };
}

/** Returns a report, with the steps left to do. */
export function install(root: string | undefined, { isRoot, hasSystemd, systemctl }: Machine): string {
  const command = `${process.execPath} -- ${join(gantry, 'gateway/main.ts')} --config ${CONFIG}`;
  if (root === undefined) {
    if (!hasSystemd) {
      throw new InstallError(
        `systemd does not run here. Have your own supervisor run this, and send it SIGHUP to reload and SIGTERM to end:\n  ${command}`,
      );
    }
    if (!isRoot) throw new InstallError('to install a service needs root (or --root FOLDER)');
    refuseHidden(gantry);
  }
  const unit = join(root ?? '/', UNIT);
  const config = join(root ?? '/', CONFIG);
  refuseForeign(unit, MARK);
  const isNew = !existsSync(config);
  if (isNew) write(config, CONFIG_EXAMPLE);
  write(unit, unitText());
  const said = [`written: ${unit}${isNew ? `, ${config}` : ''}`];
  if (root !== undefined) return [...said, `then: systemctl enable --now ${SERVICE}`].join('\n');
  systemctl('daemon-reload');
  if (isNew) {
    return [...said, `${config} needs the address of your server; then: systemctl enable --now ${SERVICE}`].join('\n');
  }
  systemctl('enable', SERVICE);
  systemctl('restart', SERVICE);
  return [...said, `${SERVICE} runs; its log: journalctl -u ${SERVICE}`].join('\n');
}

/** Settings and counts stay. */
export function uninstall(root: string | undefined, { isRoot, hasSystemd, systemctl }: Machine): string {
  if (root === undefined && !isRoot) throw new InstallError('to remove a service needs root (or --root FOLDER)');
  const unit = join(root ?? '/', UNIT);
  if (!existsSync(unit)) return `there is no ${unit}`;
  refuseForeign(unit, MARK);
  const tellsSystemd = root === undefined && hasSystemd;
  if (tellsSystemd) systemctl('disable', '--now', SERVICE);
  rmSync(unit);
  if (tellsSystemd) systemctl('daemon-reload');
  return `removed: ${unit}; ${join(root ?? '/', CONFIG)} and /var/lib/gantry-gateway stay`;
}

/** The service's own user must be able to read the program. */
function refuseHidden(folder: string): void {
  for (let path = folder; path !== '/'; path = dirname(path)) {
    if ((statSync(path).mode & 0o005) === 0o005) continue;
    throw new InstallError(`the service could not read ${folder}: ${path} is closed to others (move it to /opt, say)`);
  }
}

function unitText(): string {
  return `${MARK}
[Unit]
Description=Gantry rate-limit gateway
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=${[process.execPath, '--', join(gantry, 'gateway/main.ts'), '--config', CONFIG].map(quoted).join(' ')}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=1
# Requests under way are answered first (timeouts.drainMs).
TimeoutStopSec=40
KillMode=mixed
LimitNOFILE=65536

DynamicUser=yes
RuntimeDirectory=gantry-gateway
StateDirectory=gantry-gateway
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
LockPersonality=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
`;
}
