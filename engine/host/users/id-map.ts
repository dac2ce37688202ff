import { Type, type Static } from 'typebox';

/** `size` ids from `inside` of a container are those from `outside` on the host. */
const IdRange = Type.Object({ inside: Type.Integer(), outside: Type.Integer(), size: Type.Integer() });
export type IdRange = Static<typeof IdRange>;

/** The users and groups of containers with a user namespace, on the host. Root has an id in both. */
export const IdMap = Type.Object({ uids: Type.Array(IdRange), gids: Type.Array(IdRange) });
export type IdMap = Static<typeof IdMap>;

/** Root of the containers, on the host. */
export function mappedRoot(map: IdMap): { uid: number; gid: number } {
  return { uid: outsideOf(map.uids, 0)!, gid: outsideOf(map.gids, 0)! };
}

/** A container's id on the host; undefined for one beyond the map. */
export function outsideOf(ranges: readonly IdRange[], id: number): number | undefined {
  const range = ranges.find(({ inside, size }) => id >= inside && id < inside + size);
  return range === undefined ? undefined : range.outside + id - range.inside;
}

/** Names the id of an owner that is beyond the map. Undefined for an owner within it. */
export function describeBeyond(map: IdMap | undefined, { uid, gid }: { uid: number; gid: number }): string | undefined {
  if (map === undefined) return undefined;
  const { uids, gids } = map;
  if (outsideOf(uids, uid) === undefined) return `the user id ${uid}, which is beyond the map of users (/etc/subuid)`;
  if (outsideOf(gids, gid) === undefined) return `the group id ${gid}, which is beyond the map of groups (/etc/subgid)`;
  return undefined;
}

/** In the form of /proc/<pid>/uid_map. */
export function mapText(ranges: readonly IdRange[]): string {
  return ranges.map(({ inside, outside, size }) => `${inside} ${outside} ${size}\n`).join('');
}

/** In the form of config.json. */
export function ociMappings(ranges: readonly IdRange[]): object[] {
  return ranges.map(({ inside, outside, size }) => ({ containerID: inside, hostID: outside, size }));
}

/** The opposite of `outsideOf`. */
export function insideOf(ranges: readonly IdRange[], id: number): number | undefined {
  const range = ranges.find(({ outside, size }) => id >= outside && id < outside + size);
  return range === undefined ? undefined : range.inside + id - range.outside;
}
