import type { Copy } from '../../buildfile/instruction.ts';
import type { Engine } from '../../engine.ts';
import { describeBeyond } from '../../host/users/id-map.ts';
import { ownIds } from '../../host/users/own-ids.ts';
import { EngineError } from '../../lib/errors.ts';
import { resolveUser } from '../../oci/user.ts';

type Owner = { owner?: { uid: number; gid: number } };

const FAILED = 'unable to convert uid/gid chown string to host mapping';
const ROOT = { uid: 0, gid: 0 };

/**
 * The owner of the copied files: that of `--chown`, by the files below `root`; otherwise root, or, from another stage,
 * their own owners. A user without a group names the group, too.
 */
export async function ownerOf(
  { idMap }: Pick<Engine, 'idMap'>,
  { chown, from }: Pick<Copy, 'chown' | 'from'>,
  root: string,
): Promise<Owner> {
  if (chown === '') return from === '' ? { owner: ROOT } : {};
  const parts = chown.split(':');
  if (parts.length > 2) throw failed(`invalid chown string format: ${chown}`);
  const [user = '', group = user] = parts;
  try {
    const { uid, gid } = await resolveUser({ user: `${user}:${group}`, groupAdd: [] }, root, { needsHome: false });
    const beyond = describeBeyond(idMap ?? ownIds, { uid, gid });
    if (beyond !== undefined) throw failed(`${chown} is ${beyond}`);
    return { owner: { uid, gid } };
  } catch (error) {
    if (!(error instanceof EngineError) || error.message.startsWith(FAILED)) throw error;
    const what = error.message.includes('find group') ? ['gid', 'group', group] : ['uid', 'user', user];
    throw failed(`can't find ${what[0]} for ${what[1]} ${what[2]}: no such ${what[1]}: ${what[2]}`, error);
  }
}

function failed(why: string, cause?: unknown): EngineError {
  return new EngineError('invalid', `${FAILED}: ${why}`, { cause });
}
