import { BYTES, field, message, TEXT, UNSIGNED } from '../wire/message.ts';

/** Messages of the other services that a client serves in its session. */
export const BytesMessage = message({ data: field(1, BYTES) });

export const CredentialsRequest = message({ host: field(1, TEXT) });
export const CredentialsResponse = message({ username: field(1, TEXT), secret: field(2, TEXT) });

export const GetSecretRequest = message({ id: field(1, TEXT) });
export const GetSecretResponse = message({ data: field(1, BYTES) });

export const CheckAgentRequest = message({ id: field(1, TEXT) });

export const HealthRequest = message({ service: field(1, TEXT) });
/** 1: it serves. */
export const HealthResponse = message({ status: field(1, UNSIGNED) });
