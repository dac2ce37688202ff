import { Type, type Static } from 'typebox';

import { IdField, limitedText } from '../../../lib/notations/field-schemas.ts';
import { isName } from '../../dns/commands.ts';

/**
 * A container of no service that wants to be in an attachable network; its node names all of them at once. The leader refuses
 * a bad name or address by itself.
 */
export const WantedAttachment = Type.Object({
  id: IdField,
  /** Id or name of the network. */
  network: limitedText(),
  /** Name of the container. */
  name: limitedText(),
  /** Further names in this network. */
  aliases: Type.Immutable(Type.Array(Type.String())),
  /** The address that it wants, or has. */
  ip: Type.Optional(limitedText()),
});
export type WantedAttachment = Readonly<Static<typeof WantedAttachment>>;

/** Containers of a node in attachable networks. */
export const MAX_ATTACHMENTS = 5000;

/** Further names of a container in a network of the cluster; more are left out, as are those that no question can ask for. */
const MAX_ALIASES = 100;

export function usableAliases(aliases: readonly string[]): string[] {
  return aliases.filter(isName).slice(0, MAX_ALIASES);
}

/** The leader's refusal. */
export const Unattached = Type.Object({
  id: IdField,
  kind: Type.Union([Type.Literal('notFound'), Type.Literal('forbidden'), Type.Literal('failed')]),
  reason: Type.String(),
});
export type Unattached = Readonly<Static<typeof Unattached>>;
