import { Type, type Static } from 'typebox';

/** The fields of a layer in the oldest formats that become a line of the history. */
export const OldSettings = Type.Object({
  created: Type.Optional(Type.String()),
  author: Type.Optional(Type.String()),
  comment: Type.Optional(Type.String()),
  container_config: Type.Optional(
    Type.Union([
      Type.Object({ Cmd: Type.Optional(Type.Union([Type.Array(Type.String()), Type.String(), Type.Null()])) }),
      Type.Null(),
    ]),
  ),
});

/** Fields of the old formats that the new one takes from elsewhere. */
const DROPPED = new Set(['id', 'parent', 'Size', 'parent_id', 'layer_id', 'throwaway']);

/** The line of the history about a layer; `isEmpty` where it left no files. */
export function oldHistoryEntry(settings: Static<typeof OldSettings>, isEmpty = false): object {
  const command = settings.container_config?.Cmd ?? [];
  return {
    created: settings.created,
    author: settings.author || undefined,
    created_by: (Array.isArray(command) ? command : [command]).join(' ') || undefined,
    comment: settings.comment || undefined,
    ...(isEmpty && { empty_layer: true }),
  };
}

/**
 * The configuration of an image of which there are only `fields` for its topmost layer. It is byte for byte what other
 * engines write, so that the ids agree.
 */
export function writeOldConfiguration(
  fields: Readonly<Record<string, unknown>>,
  diffIds: readonly string[],
  history: readonly unknown[],
): string {
  const kept = Object.entries(fields).filter(([key]) => !DROPPED.has(key));
  return goJson({ ...Object.fromEntries(kept), rootfs: { type: 'layers', diff_ids: diffIds }, history });
}

/** Go's JSON: top-level keys sorted, and some characters escaped as Go's encoder does. */
function goJson(fields: Readonly<Record<string, unknown>>): string {
  const sorted = Object.fromEntries(Object.entries(fields).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  return JSON.stringify(sorted).replaceAll(
    /[<>&\u2028\u2029]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
