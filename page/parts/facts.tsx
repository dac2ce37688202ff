import type { ComponentChildren, JSX } from 'preact';

/** A name and its value; an undefined value is left out. */
export type Fact = readonly [name: string, value: ComponentChildren];

/** Facts below each other. */
export function Facts({ facts }: { facts: readonly Fact[] }): JSX.Element {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== undefined && value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <bdi>{value}</bdi>
            </dd>
          </div>
        ))}
    </dl>
  );
}
