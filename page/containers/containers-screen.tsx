import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { isReadOnly } from '../api/request.ts';
import { useStore } from '../parts/store.ts';
import { countText } from '../parts/texts.ts';
import { VirtualRows } from '../parts/virtual-rows.tsx';
import { ChosenActions } from './chosen-actions.tsx';
import { ContainerRow } from './container-row.tsx';
import { containers } from './containers.ts';
import { rowsOf, type Order, type Shown } from './rows.ts';
import { followUsage, usages } from './usage.ts';

const ROW_HEIGHT = 34;
/** The first columns, and the classes of the others, of which a narrow screen hides some. */
const ALWAYS_SHOWN = 3;
const REST = ['wide', 'ports middle', 'number', 'number narrow', 'number wide', 'number middle'];
const SHOWN: readonly (readonly [Shown, string])[] = [
  ['all', 'All'],
  ['running', 'Running'],
  ['stopped', 'Stopped'],
  ['unhealthy', 'Unhealthy'],
];

/** What runs, and its use of the machine. */
export function ContainersScreen(): JSX.Element {
  const all = useStore(containers);
  const used = useStore(usages);
  const readOnly = useStore(isReadOnly);
  const scroller = useRef<HTMLDivElement>(null);
  const [search, setSearch] = useState('');
  const [shown, setShown] = useState<Shown>('all');
  const [order, setOrder] = useState<Order>('name');
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [chosenIds, setChosen] = useState<ReadonlySet<string>>(new Set());
  useEffect(followUsage, []);
  const rows = useMemo(
    () => rowsOf(all ?? new Map(), used, { search, shown, order, closed }),
    [all, used, search, shown, order, closed],
  );
  const chosen = [...chosenIds].flatMap((id) => all?.get(id) ?? []);
  const choose = (ids: readonly string[], isChosen: boolean): void => {
    const next = new Set(chosenIds);
    for (const id of ids)
      if (isChosen) next.add(id);
      else next.delete(id);
    setChosen(next);
  };
  const inView = rows.flatMap((row) => (row.kind === 'container' ? [row.container.Id] : []));
  const running = [...(all?.values() ?? [])].filter(({ State }) => State === 'running').length;
  return (
    <section class="screen">
      <div class="bar">
        <h1>Containers</h1>
        <span class="soft">{all === undefined ? '' : `${running} of ${all.size} running`}</span>
        <input
          type="search"
          placeholder="Search  /"
          aria-label="Search containers"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <div class="choice" role="group" aria-label="Filter">
          {SHOWN.map(([value, word]) => (
            <button key={value} type="button" aria-pressed={shown === value} onClick={() => setShown(value)}>
              {word}
            </button>
          ))}
        </div>
        {!readOnly && <ChosenActions chosen={chosen} done={() => setChosen(new Set())} />}
      </div>
      <div class="scroller" ref={scroller} tabIndex={0} role="region" aria-label="Table of containers">
        <table class="rows" aria-rowcount={rows.length + 1}>
          <thead>
            <tr>
              <th class="check">
                <input
                  type="checkbox"
                  aria-label="Choose all shown"
                  checked={inView.length > 0 && inView.every((id) => chosenIds.has(id))}
                  onChange={(event) => choose(inView, event.currentTarget.checked)}
                />
              </th>
              <th class="state-cell">State</th>
              <Sorted order="name" now={order} set={setOrder} word="Name" />
              <th class="image wide">Image</th>
              <th class="ports middle">Ports</th>
              <Sorted order="cpu" now={order} set={setOrder} word="CPU" kind="number" />
              <Sorted order="memory" now={order} set={setOrder} word="Memory" kind="number narrow" />
              <th class="number wide">Network</th>
              <Sorted order="age" now={order} set={setOrder} word="Age" kind="number middle" />
            </tr>
          </thead>
          <VirtualRows scroller={scroller} rows={rows} rowHeight={ROW_HEIGHT}>
            {(row, index) =>
              row.kind === 'group' ? (
                <tr key={`group ${row.project}`} class="group" aria-rowindex={index + 2}>
                  <td colSpan={ALWAYS_SHOWN}>
                    <button
                      type="button"
                      aria-expanded={!closed.has(row.project)}
                      onClick={() => setClosed(closed.symmetricDifference(new Set([row.project])))}
                    >
                      <bdi>{row.project === '' ? 'Others' : row.project}</bdi>
                    </button>
                    <span class="soft">{countText(row.members.length, 'container')}</span>
                    <button
                      type="button"
                      onClick={() =>
                        choose(
                          row.members.map(({ Id }) => Id),
                          true,
                        )
                      }
                    >
                      choose all
                    </button>
                  </td>
                  {REST.map((kind, at) => (
                    <td key={at} class={kind} />
                  ))}
                </tr>
              ) : (
                <ContainerRow
                  key={row.container.Id}
                  container={row.container}
                  usage={used.get(row.container.Id)}
                  index={index}
                  isChosen={chosenIds.has(row.container.Id)}
                  choose={(isChosen) => choose([row.container.Id], isChosen)}
                />
              )
            }
          </VirtualRows>
        </table>
        {all !== undefined && rows.length === 0 && (
          <p class="empty">{all.size === 0 ? 'There are no containers yet.' : 'No container fits the search.'}</p>
        )}
      </div>
    </section>
  );
}

type SortedProps = { order: Order; now: Order; set: (order: Order) => void; word: string; kind?: string };

function Sorted({ order, now, set, word, kind = '' }: SortedProps): JSX.Element {
  return (
    <th class={kind} aria-sort={order === now ? (order === 'name' ? 'ascending' : 'descending') : undefined}>
      <button type="button" onClick={() => set(order)}>
        {word}
        {order === now ? ' ▾' : ''}
      </button>
    </th>
  );
}
