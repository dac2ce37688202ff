import { Type, type Static, type TSchema } from 'typebox';

const orNull = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
const Texts = Type.Record(Type.String(), Type.String());
const Driver = Type.Object({ Name: Type.Optional(Type.String()), Options: orNull(Texts) });

/** Body of a creation and of an update. */
export const SecretBody = Type.Object({
  Name: Type.Optional(Type.String()),
  Labels: orNull(Texts),
  Data: orNull(Type.String({ description: 'Base64' })),
  /** A plugin that has the value; only of secrets. */
  Driver: orNull(Driver),
  Templating: orNull(Driver),
});
export type SecretBody = Readonly<Static<typeof SecretBody>>;

export const SecretsQuery = Type.Object({
  filters: Type.Optional(Type.String({ description: 'JSON map of id, label, name or names to its values' })),
});
export const SecretRef = Type.Object({ ref: Type.String({ description: 'Id, name, or unique prefix of an id' }) });
export const UpdateSecretQuery = Type.Object({
  version: Type.Optional(Type.String({ description: 'The Version.Index of the object that the update is of' })),
});
