import { Type, type Static } from 'typebox';

/** A health check of an image or a container. */
export const Healthcheck = Type.Object({
  Test: Type.Optional(Type.Array(Type.String())),
  Interval: Type.Optional(Type.Integer({ description: 'Nanoseconds; 0 inherits' })),
  Timeout: Type.Optional(Type.Integer({ description: 'Nanoseconds; 0 inherits' })),
  StartPeriod: Type.Optional(Type.Integer({ description: 'Nanoseconds; 0 inherits' })),
  StartInterval: Type.Optional(Type.Integer({ description: 'Nanoseconds, in the start period; 0 inherits' })),
  Retries: Type.Optional(Type.Integer({ description: '0 inherits' })),
});
export type Healthcheck = Static<typeof Healthcheck>;
