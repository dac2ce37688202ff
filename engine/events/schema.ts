import { Type, type Static } from 'typebox';

export const EventsQuery = Type.Object({
  since: Type.Optional(
    Type.String({ description: 'UNIX seconds with a fraction, RFC 3339, a date, or how long ago (10m)' }),
  ),
  until: Type.Optional(Type.String({ description: 'the same' })),
  filters: Type.Optional(Type.String()),
});

export const EventMessage = Type.Object({
  status: Type.Optional(Type.String()),
  id: Type.Optional(Type.String()),
  from: Type.Optional(Type.String()),
  Type: Type.String(),
  Action: Type.String(),
  Actor: Type.Object({ ID: Type.String(), Attributes: Type.Record(Type.String(), Type.String()) }),
  scope: Type.String(),
  time: Type.Integer(),
  timeNano: Type.Integer(),
});
export type EventMessage = Static<typeof EventMessage>;
