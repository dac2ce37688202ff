import { Type, type Static } from 'typebox';

export const NodesQuery = Type.Object({
  filters: Type.Optional(
    Type.String({ description: 'JSON map of id, label, membership, name, node.label or role to its values' }),
  ),
});
export const NodeRef = Type.Object({ ref: Type.String({ description: 'Id, host name, or unique prefix of an id' }) });
export const RemoveQuery = Type.Object({ force: Type.Optional(Type.Boolean({ default: false })) });
export const UpdateNodeQuery = Type.Object({ version: Type.Optional(Type.String()) });

export const NodeSpecBody = Type.Object({
  Name: Type.Optional(Type.String()),
  Role: Type.Optional(Type.String()),
  Availability: Type.Optional(Type.String()),
  Labels: Type.Optional(Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()])),
});
export type NodeSpecBody = Readonly<Static<typeof NodeSpecBody>>;
