import { isSlice, isSystemdRunning, usualCgroupDriver, type CgroupDriver } from '../host/cgroups/cgroup-driver.ts';
import { EngineError } from '../lib/errors.ts';
import type { SettingsChecks } from './check.ts';
import type { ConfigFile } from './schema.ts';

type Settings = Pick<ConfigFile, 'cgroup-driver' | 'exec-opts' | 'cgroup-parent'>;

/** The driver in the settings, by our key or by dockerd's. */
export function chosenCgroupDriver(settings: Settings): CgroupDriver | undefined {
  const [option = ''] = settings['exec-opts'].slice(-1);
  const chosen = settings['cgroup-driver'] || option.split('=')[1];
  return chosen === 'systemd' || chosen === 'cgroupfs' ? chosen : undefined;
}

export const cgroupSettingsChecks: SettingsChecks = {
  'cgroup-driver': (settings) => refuseSystemd(settings['cgroup-driver']),
  'exec-opts': (settings) => {
    for (const option of settings['exec-opts']) {
      const driver = /^native\.cgroupdriver=(systemd|cgroupfs)$/.exec(option)?.[1];
      if (driver === undefined) throw refusal(`native.cgroupdriver=systemd or =cgroupfs is expected, not ${option}`);
      const other = settings['cgroup-driver'];
      if (other !== '' && other !== driver) throw refusal(`${driver} contradicts the setting cgroup-driver`);
      refuseSystemd(driver);
    }
  },
  'cgroup-parent': (settings) => {
    const parent = settings['cgroup-parent'];
    const driver = chosenCgroupDriver(settings) ?? usualCgroupDriver();
    if (parent === '' || isSlice(parent) === (driver === 'systemd')) return;
    throw refusal(
      driver === 'systemd' ? `${parent} is not a slice such as a.slice` : `${parent} is a slice of systemd`,
    );
  },
};

function refuseSystemd(driver: string): void {
  if (driver === 'systemd' && !isSystemdRunning()) throw refusal('systemd is not the first process of this machine');
}

function refusal(message: string): EngineError {
  return new EngineError('invalid', message);
}
