import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { Admission } from './admission.ts';

/** Connections that enter, and those that were let in. */
class Door {
  readonly #admission = new Admission();
  readonly letIn: string[] = [];

  enter(address: string, name = address): Disposable | undefined {
    return this.#admission.enter(address, () => void this.letIn.push(name));
  }

  enterAll(count: number, address: (index: number) => string): (Disposable | undefined)[] {
    return Array.from({ length: count }, (_, index) => this.enter(address(index)));
  }
}

const many = (index: number): string => `10.0.${index >> 8}.${index & 255}`;

suite('admission of strangers', () => {
  test('an address has 32 connections, and 1,024 that wait', () => {
    const door = new Door();

    const entries = door.enterAll(1100, () => '10.0.0.1');

    assert.equal(door.letIn.length, 32);
    assert.equal(entries.filter((entry) => entry !== undefined).length, 32 + 1024);
  });

  test('a full address keeps out no other', () => {
    const door = new Door();
    door.enterAll(1100, () => '10.0.0.1');

    door.enter('10.0.0.2');

    assert.equal(door.letIn.at(-1), '10.0.0.2');
  });

  test('all addresses together have 512 connections, and 4,096 that wait', () => {
    const door = new Door();

    const entries = door.enterAll(6000, many);

    assert.equal(door.letIn.length, 512);
    assert.equal(entries.filter((entry) => entry !== undefined).length, 512 + 4096);
  });

  test('addresses take turns', () => {
    const door = new Door();
    const [first, second] = door.enterAll(512, many);
    for (const name of ['a1', 'a2', 'b1', 'c1']) door.enter(`192.0.2.${name.charCodeAt(0)}`, name);

    for (const entry of [first, second]) entry![Symbol.dispose]();

    assert.deepEqual(door.letIn.slice(-2), ['a1', 'b1']);
  });

  test('a connection that ends makes room once, also one that waits', () => {
    const door = new Door();
    const entries = door.enterAll(34, () => '10.0.0.1');

    entries.at(-2)![Symbol.dispose]();
    entries.at(-2)![Symbol.dispose]();
    assert.equal(door.letIn.length, 32);
    entries[0]![Symbol.dispose]();
    entries[0]![Symbol.dispose]();

    assert.equal(door.letIn.length, 33);
    door.enter('10.0.0.1');
    assert.equal(door.letIn.length, 33);
  });

  test('addresses of one network of IPv6 count together, those of IPv4 apart', () => {
    const door = new Door();

    door.enterAll(40, (index) => `2001:db8::${index}`);
    assert.equal(door.letIn.length, 32);
    door.enterAll(40, (index) => `2001:db8:0:${index}::1`);
    door.enterAll(40, (index) => `::ffff:10.0.0.${index}`);

    assert.equal(door.letIn.length, 32 + 39 + 40);
  });
});
