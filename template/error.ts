/** A template that cannot be read, or not be filled with what it was given. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';

  constructor(reason: string) {
    super(`template: ${reason}`);
  }
}
