import { Type, type Static } from 'typebox';

export const PageBody = Type.Object({
  ReadOnly: Type.Optional(Type.Boolean({ description: 'A page that can change nothing' })),
});

export const PageInvitation = Type.Object({
  URL: Type.String({ description: 'Opens the page once, within five minutes' }),
  ReadOnly: Type.Boolean(),
});
export type PageInvitation = Static<typeof PageInvitation>;
