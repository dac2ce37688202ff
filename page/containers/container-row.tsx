import type { Summary } from '@gantry/client/containers.ts';
import type { JSX } from 'preact';

import { hrefOf } from '../app/route.ts';
import { ageText, percentText, sizeText } from '../parts/texts.ts';
import { nameOf } from './names.ts';
import { PortLinks } from './port-links.tsx';
import { SERVICE } from './rows.ts';
import { exitCodeOf, StateMark } from './state-mark.tsx';
import type { Usage } from './usage.ts';

type Props = {
  container: Summary;
  usage: Usage | undefined;
  index: number;
  isChosen: boolean;
  choose: (isChosen: boolean) => void;
};

/** One container of the table. */
export function ContainerRow({ container, usage, index, isChosen, choose }: Props): JSX.Element {
  const { Id, State, Status, Health, Image, Ports, Created, Labels } = container;
  const name = nameOf(container);
  const service = Labels[SERVICE];
  return (
    <tr aria-rowindex={index + 2} class={isChosen ? 'chosen' : undefined}>
      <td class="check">
        <input
          type="checkbox"
          aria-label={`Choose ${name}`}
          checked={isChosen}
          onChange={(event) => choose(event.currentTarget.checked)}
        />
      </td>
      <td class="state-cell">
        <StateMark State={State} Health={Health} ExitCode={exitCodeOf(Status)} />
      </td>
      <td class="name">
        <a class="row-link" href={hrefOf('containers', Id)} title={name}>
          <bdi>{name}</bdi>
        </a>
        {service !== undefined && <bdi class="soft"> {service}</bdi>}
      </td>
      <td class="image wide" title={Image}>
        <bdi>{Image}</bdi>
      </td>
      <td class="ports middle">
        <PortLinks ports={Ports} />
      </td>
      <td class="number">{usage === undefined ? '' : percentText(usage.cpu)}</td>
      <td class="number narrow">{usage === undefined ? '' : sizeText(usage.memory)}</td>
      <td class="number wide">{usage === undefined ? '' : `${sizeText(usage.received + usage.sent)}/s`}</td>
      <td class="number middle" title={Status}>
        {ageText(Created * 1000)}
      </td>
    </tr>
  );
}
