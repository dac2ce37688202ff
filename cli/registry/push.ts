import { pushImage } from '@gantry/client/images.ts';

import { command } from '../command-line/command.ts';
import { UsageError } from '../exit-codes.ts';
import { PLATFORM, platformJson } from '../images/platform-flag.ts';
import { authHeader } from './docker-config.ts';
import { progressOn } from './progress.ts';

/** `gantry push`. */
export const push = command({
  words: 'NAME[:TAG]',
  count: [1, 1],
  flags: {
    'all-tags': { kind: 'boolean', short: 'a', help: 'All tags of the repository' },
    platform: PLATFORM,
    quiet: { kind: 'boolean', short: 'q', help: 'Only the name' },
  },
  offers: 'image',
  examples: ['gantry tag busybox localhost:5000/busybox', 'gantry push localhost:5000/busybox'],
  run: async ({ connection }, [name = ''], { 'all-tags': isAll, platform, quiet }) => {
    const at = name.indexOf(':', name.lastIndexOf('/') + 1);
    if (isAll && at >= 0) throw new UsageError("tag can't be used with --all-tags/-a");
    const tagged = at < 0 && !isAll ? `${name}:latest` : name;
    if (tagged !== name && !quiet) console.log('Using default tag: latest');
    const pushed = { name: tagged, platform: platform && platformJson(platform) };
    const show = quiet ? (): void => undefined : progressOn(process.stdout);
    await pushImage(connection, pushed, await authHeader(name), show);
    if (quiet) console.log(tagged);
  },
});
