import type { Summary } from '@gantry/client/containers.ts';
import type { JSX } from 'preact';

/** Published ports; those of TCP lead to the machine that serves this page. */
export function PortLinks({ ports }: { ports: Summary['Ports'] }): JSX.Element {
  const published = new Map(
    ports.flatMap(({ PublicPort, PrivatePort, Type }) =>
      PublicPort === undefined ? [] : [[`${PublicPort}/${Type}`, { PublicPort, PrivatePort, Type }] as const],
    ),
  );
  return (
    <>
      {[...published].map(([key, { PublicPort, PrivatePort, Type }]) =>
        Type === 'tcp' ? (
          <a key={key} href={`http://${location.hostname}:${PublicPort}/`} target="_blank" rel="noopener noreferrer">
            {PublicPort}→{PrivatePort}
          </a>
        ) : (
          <span key={key}>
            {PublicPort}→{PrivatePort}/{Type}
          </span>
        ),
      )}
    </>
  );
}
