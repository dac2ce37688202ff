import { Type } from 'typebox';

import type { Database } from '../../../db/database.ts';
import { createTable } from '../../../db/migration-sql.ts';
import { RecordTable } from '../../../db/table.ts';
import { Member } from './members.ts';

const Row = Type.Object({ network: Type.String(), member: Member });

/** Members of this node's overlays, as the leader listed them last: a daemon without a leader knows them too. */
export class MemberStore {
  readonly #rows;

  constructor(db: Database) {
    db.migrate('overlay_members', [createTable('overlay_members')]);
    this.#rows = new RecordTable(db, {
      name: 'overlay_members',
      schema: Row,
      id: ({ network, member }) => idOf(network, member.id),
      groups: { network: ({ network }) => network },
    });
  }

  in(network: string): Member[] {
    return this.#rows.in('network', network).map(({ member }) => member);
  }

  get(network: string, id: string): Member | undefined {
    return this.#rows.get(idOf(network, id))?.member;
  }

  put(network: string, member: Member): void {
    // A new session tells everything again.
    if (JSON.stringify(this.get(network, member.id)) === JSON.stringify(member)) return;
    this.#rows.put({ network, member });
  }

  delete(network: string, id: string): void {
    this.#rows.delete(idOf(network, id));
  }

  /** The networks that have members. */
  networks(): Set<string> {
    return new Set(this.#rows.values().map(({ network }) => network));
  }
}

function idOf(network: string, id: string): string {
  return `${network}/${id}`;
}
