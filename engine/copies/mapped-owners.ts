import { fstatSync, type BigIntStats, type Stats } from 'node:fs';

import { asUser } from '../host/users/file-user.ts';
import { insideOf, mappedRoot, outsideOf, type IdMap } from '../host/users/id-map.ts';
import { withChangedIds, type ChangedIds } from '../host/users/named-ids.ts';
import type { TarEntry } from '../layers/tar/tar-header.ts';
import { EngineError } from '../lib/errors.ts';

type Owner = Readonly<{ uid: number; gid: number }>;

/**
 * The owners of the files of a running container with a map: its root has ids of the host, and its volumes those of the
 * disk, which are the container's.
 */
export class MappedOwners {
  readonly #map: IdMap;
  readonly #device: number;
  readonly #inside: ChangedIds;
  readonly #outside: ChangedIds;

  constructor(map: IdMap, root: number) {
    this.#map = map;
    this.#inside = {
      user: (id) => insideOf(map.uids, id) ?? id,
      group: (id) => insideOf(map.gids, id) ?? id,
    };
    this.#outside = {
      user: (id) => outsideOf(map.uids, id) ?? id,
      group: (id) => outsideOf(map.gids, id) ?? id,
    };
    this.#device = fstatSync(root).dev;
  }

  /** Changes the owner that the kernel tells to that inside of the container. */
  readonly toInside = (stat: Stats): Stats => {
    if (stat.dev !== this.#device) return stat;
    stat.uid = this.#inside.user(stat.uid);
    stat.gid = this.#inside.group(stat.gid);
    return stat;
  };

  /** The owner inside of the container. */
  ownerInside({ dev, uid, gid }: BigIntStats): Owner {
    const owner = { uid: Number(uid), gid: Number(gid) };
    if (Number(dev) !== this.#device) return owner;
    return { uid: this.#inside.user(owner.uid), gid: this.#inside.group(owner.gid) };
  }

  /** Like `toInside`, for the ids in an extended attribute of a file on `device`. */
  readonly attributeToInside = (name: string, value: Buffer, device: number): Buffer =>
    device === this.#device ? withChangedIds(name, value, this.#inside) : value;

  /** The extended attributes for a file in `folder`. */
  attributesToOutside(folder: number, attributes: TarEntry['xattrs']): TarEntry['xattrs'] {
    if (attributes.length === 0 || fstatSync(folder).dev !== this.#device) return attributes;
    return attributes.map(([name, value]) => [name, withChangedIds(name, value, this.#outside)]);
  }

  /** The owner for files in `folder`. Throws `invalid` for one that the container cannot have. */
  toOutside(folder: number, { uid, gid }: Owner): Owner {
    if (fstatSync(folder).dev !== this.#device) return { uid, gid };
    const [user, group] = [outsideOf(this.#map.uids, uid), outsideOf(this.#map.gids, gid)];
    if (user !== undefined && group !== undefined) return { uid: user, gid: group };
    throw new EngineError('invalid', `the owner ${uid}:${gid} is beyond the map of the container's users`);
  }

  /** Creates files: in the root, nobody but users of the map can. */
  write<T>(work: () => T): T {
    return asUser(mappedRoot(this.#map), work);
  }
}
