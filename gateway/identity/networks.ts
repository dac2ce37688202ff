import type { Caller } from '@gantry/limiter/types.ts';

import type { Config } from '../config/schema.ts';
import { readFile } from '../lib/reason.ts';
import { AddressRanges } from './address.ts';

type Settings = Config['networks'][number];

/** Limits of callers without a credential by their network. The first list that contains the address counts. */
export class Networks {
  readonly #lists: readonly Readonly<{ ranges: AddressRanges; settings: Settings }>[];

  constructor(networks: Config['networks']) {
    this.#lists = networks.map((settings) => ({ ranges: new AddressRanges(rangesOf(settings)), settings }));
  }

  /** The caller with the limit of its network; with `together`, one caller for the whole network. */
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

/** The ranges of the settings and of the file (one per line; `#` begins a comment). */
export function rangesOf({ ranges, file }: Pick<Settings, 'ranges' | 'file'>): string[] {
  if (file === undefined) return ranges;
  const lines = readFile(file).split('\n');
  return [...ranges, ...lines.map((line) => line.replace(/#.*/, '').trim()).filter((line) => line !== '')];
}
