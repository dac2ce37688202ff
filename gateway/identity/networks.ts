import { readFileSync } from 'node:fs';

import type { Caller } from '@gantry/limiter/types.ts';

import type { Config } from '../config/schema.ts';
import { AddressRanges } from './address.ts';

type Settings = Config['networks'][number];

/** Limits of callers without a credential by the network that they come from; the first list that has an address counts. */
export class Networks {
  readonly #lists: readonly Readonly<{ ranges: AddressRanges; settings: Settings }>[];

  constructor(networks: Config['networks']) {
    this.#lists = networks.map((settings) => ({ ranges: new AddressRanges(rangesOf(settings)), settings }));
  }

  /** The same caller with the limit of its network; where that counts together, one caller for all of it. */
  placed(caller: Caller, address: string): Caller {
    for (const { ranges, settings } of this.#lists) {
      if (!ranges.has(address)) continue;
      const { limit, together, name } = settings;
      if (!together) return { ...caller, limit };
      return { ...caller, limit, key: `network:${name}`, label: `the network of ${caller.label}` };
    }
    return caller;
  }
}

/** Those of the settings and of the file, one in a line; what follows `#` is a remark. */
export function rangesOf({ ranges, file }: Pick<Settings, 'ranges' | 'file'>): string[] {
  if (file === undefined) return ranges;
  const lines = readFileSync(file, 'utf8').split('\n');
  return [...ranges, ...lines.map((line) => line.replace(/#.*/, '').trim()).filter((line) => line !== '')];
}
