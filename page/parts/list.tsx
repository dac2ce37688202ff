import type { ComponentChildren, JSX } from 'preact';

type ListProps = { head: readonly string[]; rows: readonly (readonly ComponentChildren[])[]; none: string };

/** A small table. */
export function List({ head, rows, none }: ListProps): JSX.Element {
  if (rows.length === 0) return <p class="soft">{none}</p>;
  return (
    <table class="list">
      <thead>
        <tr>
          {head.map((word) => (
            <th key={word}>{word}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={index}>
            {row.map((value, column) => (
              <td key={column} data-column={head[column]}>
                <bdi>{value}</bdi>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
