const CAPABILITY = 'security.capability';
const ACCESS_LISTS = ['system.posix_acl_access', 'system.posix_acl_default'];

/** Sizes of a file's capabilities (`vfs_cap_data`) without and with the user who is root for them. */
const PLAIN_BYTES = 20;
const ROOTED_BYTES = 24;
const [PLAIN, ROOTED] = [0x02, 0x03];

/** Access lists (`posix_acl_xattr_header`): a version, then tag, permissions and id of each entry. */
const HEADER_BYTES = 4;
const ENTRY_BYTES = 8;
const [NAMED_USER, NAMED_GROUP] = [0x02, 0x08];

export type ChangedIds = Readonly<{ user: (id: number) => number; group: (id: number) => number }>;

/**
 * The value of an extended attribute with other ids in it: those of a file's capabilities and of access lists. Capabilities
 * that belong to root are written without it. Values that the kernel would refuse stay.
 */
export function withChangedIds(name: string, value: Buffer, { user, group }: ChangedIds): Buffer {
  if (name === CAPABILITY) return capability(value, user);
  if (ACCESS_LISTS.includes(name)) return accessList(value, { user, group });
  return value;
}

function capability(value: Buffer, changed: (id: number) => number): Buffer {
  const revision = value[3];
  const isPlain = value.length === PLAIN_BYTES && revision === PLAIN;
  const isRooted = value.length === ROOTED_BYTES && revision === ROOTED;
  if (!isPlain && !isRooted) return value;
  const root = changed(isRooted ? value.readUInt32LE(PLAIN_BYTES) : 0);
  const result = Buffer.alloc(root === 0 ? PLAIN_BYTES : ROOTED_BYTES);
  value.copy(result, 0, 0, PLAIN_BYTES);
  result[3] = root === 0 ? PLAIN : ROOTED;
  if (root !== 0) result.writeUInt32LE(root, PLAIN_BYTES);
  return result;
}

function accessList(value: Buffer, { user, group }: ChangedIds): Buffer {
  const result = Buffer.from(value);
  for (let at = HEADER_BYTES; at + ENTRY_BYTES <= value.length; at += ENTRY_BYTES) {
    const tag = value.readUInt16LE(at);
    const id = value.readUInt32LE(at + 4);
    if (tag === NAMED_USER) result.writeUInt32LE(user(id), at + 4);
    if (tag === NAMED_GROUP) result.writeUInt32LE(group(id), at + 4);
  }
  return result;
}
