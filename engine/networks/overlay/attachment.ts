import { Type, type Static } from 'typebox';

/** A container of no service that wants to be in an attachable network; its node says all of them at once. */
export const WantedAttachment = Type.Object({
  id: Type.String(),
  /** Id or name. */
  network: Type.String(),
  /** Name of the container. */
  name: Type.String(),
  /** Further names in this network. */
  aliases: Type.Immutable(Type.Array(Type.String())),
  /** The address that it wants, or has. */
  ip: Type.Optional(Type.String()),
});
export type WantedAttachment = Readonly<Static<typeof WantedAttachment>>;

/** The leader's refusal. */
export const Unattached = Type.Object({
  id: Type.String(),
  kind: Type.Union([Type.Literal('notFound'), Type.Literal('forbidden'), Type.Literal('failed')]),
  reason: Type.String(),
});
export type Unattached = Readonly<Static<typeof Unattached>>;
