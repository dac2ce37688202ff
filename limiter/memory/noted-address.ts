import { EMPTY } from './slab.ts';

type Constructor = new (object: object) => object;

/** A base class that gives an existing object its private fields: a constructor may return another object. */
const Given = function given(object: object): object {
  return object;
} as unknown as Constructor;

/**
 * The address of a caller's record, noted in the caller itself, so that its next request needs no search among a
 * million. As a private field nobody else sees it, copies of the caller do not have it, and it goes with the caller.
 *
 * It is a guess: another store may have noted it, or the record may be another caller's by now.
 */
export class NotedAddress extends Given {
  #address: number;

  private constructor(caller: object, address: number) {
    super(caller);
    this.#address = address;
  }

  static of(caller: object): number {
    return #address in caller ? caller.#address : EMPTY;
  }

  static note(caller: object, address: number): void {
    if (#address in caller) caller.#address = address;
    else if (Object.isExtensible(caller)) void new NotedAddress(caller, address);
  }
}
