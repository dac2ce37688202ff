import type { BytePath } from '../../host/files/openat.ts';
import { append } from '../../lib/append.ts';
import { innerPath } from './entry-names.ts';
import { joinPath, splitPath } from './extracted-folders.ts';
import { badArchive, type TarEntry } from './tar-header.ts';

const MAX_LINKS = 40;
/** Memory of all links of an archive, and of one besides its path and target. */
const [MAX_BYTES, LINK_BYTES] = [32 * 1024 * 1024, 200];

/** The places that the entries of an archive get when it is extracted, known without extracting it: behind its links. */
export class EntryPlaces {
  readonly #links = new Map<BytePath, BytePath>();
  #bytes = 0;

  /** The path of the next entry; the whole path of no entry is followed, as it replaces a link. */
  next(entry: TarEntry): BytePath {
    const path = this.#place(innerPath(entry.path, 'the name'));
    const target = entry.type === 'symlink' ? entry.linkPath : this.#links.get(this.targetOf(entry));
    if (target === undefined) this.#links.delete(path);
    else this.#add(path, target);
    return path;
  }

  #add(path: BytePath, target: BytePath): void {
    this.#bytes += LINK_BYTES + path.length + target.length;
    if (this.#bytes > MAX_BYTES) throw badArchive('it has too many links');
    this.#links.set(path, target);
  }

  /** The path of the file that a hard link names; empty for other entries. */
  targetOf({ type, linkPath }: TarEntry): BytePath {
    return type === 'link' ? this.#place(innerPath(linkPath, 'the link')) : '';
  }

  #place(path: BytePath): BytePath {
    if (this.#links.size === 0) return path;
    const [folder, name] = splitPath(path);
    return joinPath(this.#follow(folder), name);
  }

  #follow(path: BytePath): BytePath {
    let done: BytePath[] = [];
    const left = path.split('/').toReversed();
    for (let links = 0; left.length > 0;) {
      const part = left.pop()!;
      if (part === '..') done.pop();
      if (part === '' || part === '.' || part === '..') continue;
      done.push(part);
      const target = this.#links.get(done.join('/'));
      if (target === undefined) continue;
      links += 1;
      if (links > MAX_LINKS) throw badArchive(`too many links in ${JSON.stringify(path)}`);
      done = target.startsWith('/') ? [] : done.slice(0, -1);
      append(left, target.split('/').toReversed());
    }
    return done.join('/');
  }
}
