import type { Api } from '@gantry/testing/api.ts';

import { compare, type Budget, type Row } from '../measure.ts';

const REPLAYED = 10_000;
/** All that dockerd keeps. */
const KEPT_BY_DOCKERD = 256;

/** `kept`: how many events one request replays. */
type Told = Readonly<{ api: Api; kept: number }>;

const budget: Budget<Told> = {
  name: '10,000 events replayed',
  unit: 'ms',
  atMost: 1,
  work: async ({ api, kept }) => {
    const filters = encodeURIComponent(JSON.stringify({ type: ['volume'] }));
    for (let count = 0; count < REPLAYED; count += kept) {
      const { raw } = await api.get(`/events?since=1&until=${Date.now() / 1000}&filters=${filters}`);
      const lines = raw.toString('latin1').split('\n').length - 1;
      if (lines !== kept) throw new Error(`${lines} events were replayed, not ${kept}`);
    }
  },
};

/** Ours in one request; of dockerd, which keeps 256, as many in 40 requests. */
export async function replayRow(ours: Api, theirs: Api): Promise<Row> {
  const mine = { api: ours, kept: REPLAYED };
  const other = { api: theirs, kept: KEPT_BY_DOCKERD };
  for (const { api, kept } of [mine, other]) {
    for (let count = 0; count < kept; count += 2) {
      await api.post('/volumes/create', { Name: 'replayed' });
      await api.delete('/volumes/replayed');
    }
  }
  return await compare(budget, mine, other);
}
