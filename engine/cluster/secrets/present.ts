import type { SecretRecord, Stored } from '../state/records.ts';
import type { SecretKind } from './kinds.ts';

/** A secret or a config as the API shows it; `data` is that of a config. */
export function presentSecret(secret: Stored<SecretKind>, data?: Buffer): object {
  const { id, version, createdAt, updatedAt, name, labels, templating } = secret;
  return {
    ID: id,
    Version: { Index: version },
    CreatedAt: createdAt,
    UpdatedAt: updatedAt,
    Spec: {
      Name: name,
      Labels: labels,
      ...(data && { Data: data.toString('base64') }),
      ...(templating && { Templating: presentTemplating(templating) }),
    },
  };
}

function presentTemplating({ name, options }: NonNullable<SecretRecord['templating']>): object {
  return { Name: name, ...(Object.keys(options).length > 0 && { Options: options }) };
}
