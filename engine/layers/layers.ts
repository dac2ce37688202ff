import type { Database } from '../db/database.ts';
import { unmountBelow } from '../host/mounts/unmount-below.ts';
import type { IdMap } from '../host/users/id-map.ts';
import { EngineError } from '../lib/errors.ts';
import { newId, shortId } from '../lib/ids.ts';
import type { SetAside } from '../trees/set-aside.ts';
import type { Blobs } from './blobs.ts';
import { COMMON } from './common-layer.ts';
import { HostMounts, type Borrow, type HostMount } from './host-mounts.ts';
import { LayerFolders } from './layer-folders.ts';
import { openLayers, type Layer, type Owner } from './records.ts';
import { WritableLayers } from './writable-layers.ts';

/** The parameters of an overlay mount; `lower` is relative to `base`, topmost first. */
export type Overlay = { base: string; lower: string[]; upper: string; work: string; target: string };

type FailureLog = { warn(details: object, message: string): void };

/**
 * The extracted layers with their owners, and the containers' writable layers.
 *
 * An owner (an image or a container) names the topmost layer of its chain. A layer lives as long as an owner, a layer
 * above it, or work in progress needs it.
 */
export class Layers implements AsyncDisposable {
  readonly folders: LayerFolders;
  readonly writable: WritableLayers;
  readonly #blobs: Blobs;
  readonly #layers;
  readonly #owners;
  readonly #leases = new Map<string, number>();
  readonly #mounts = new HostMounts();
  readonly #log: FailureLog;

  constructor(db: Database, blobs: Blobs, dataRoot: string, log: FailureLog) {
    this.#blobs = blobs;
    this.#log = log;
    const { layers, owners } = openLayers(db);
    this.#layers = layers;
    this.#owners = owners;
    const onFailure = (error: unknown, path: string): void =>
      log.warn({ err: error, path }, 'cannot remove a folder; the next start of the daemon tries again');
    this.folders = new LayerFolders(dataRoot, onFailure);
    unmountBelow(WritableLayers.folder(dataRoot)); // before anything below it is removed
    const projects = this.#owners.all().flatMap(({ project = [] }) => project);
    this.writable = new WritableLayers(dataRoot, projects, onFailure);
  }

  get(chainId: string): Layer | undefined {
    return this.#layers.get(chainId);
  }

  all(): readonly Layer[] {
    return this.#layers.all();
  }

  /** The layers of a chain, topmost first. */
  chain(top: string | undefined): Layer[] {
    const chain: Layer[] = [];
    for (let id = top; id !== undefined;) {
      const layer = this.#layers.get(id);
      if (layer === undefined) throw new EngineError('failed', `layer ${id} does not exist: load its image again`);
      chain.push(layer);
      id = layer.parent;
    }
    return chain;
  }

  /**
   * Creates a container's writable layer, and makes it an owner of the image's layers, which stay even when the image
   * is removed by force. `limitBytes` is the most that the writable layer may hold, where `writable.limits.check` allows one.
   * Throws `notFound` when the image has just been removed.
   */
  async prepare(containerId: string, imageId: string | undefined, limitBytes?: number): Promise<void> {
    const image = imageId === undefined ? undefined : this.#owners.get(imageId);
    if (imageId !== undefined && image === undefined) throw new EngineError('notFound', `No such image: ${imageId}`);
    const top = image?.top;
    const limit = limitBytes === undefined ? undefined : this.writable.limits.plan(limitBytes);
    this.#owners.put({ owner: containerId, kind: 'container', top, ...(limit && { project: limit.project }) });
    try {
      this.writable.make(containerId, limit?.put);
    } catch (error) {
      await this.remove(containerId);
      throw error;
    }
  }

  /** The overlay of the container's root file system. */
  overlay(containerId: string): Overlay {
    const chain = this.chain(this.#ownerOf(containerId).top);
    const lower = [this.folders.initNameOf(chain[0]), ...chain.map((layer) => layer.folder)];
    return { base: this.folders.directory, lower, ...this.writable.places(containerId) };
  }

  /** The folders of an image's layers, below `folders.directory`, topmost first. Throws `failed` if one is missing. */
  imageFolders(imageId: string): string[] {
    const chain = this.chain(this.#ownerOf(imageId).top);
    const lost = chain.find((layer) => !this.folders.isWhole(layer));
    if (lost === undefined) return chain.map((layer) => layer.folder);
    throw new EngineError('failed', `a layer of image ${imageId} is missing: load the image again`);
  }

  /** Like `overlay`, for a mount: the init layer exists. Throws `failed` when another folder is missing. */
  wholeOverlay(containerId: string): Overlay {
    const overlay = this.#checkedOverlay(containerId);
    this.folders.makeInit(this.chain(this.#ownerOf(containerId).top));
    return overlay;
  }

  /** Throws `failed` when a folder of the image or of the container is missing. */
  #checkedOverlay(containerId: string): Overlay {
    const overlay = this.overlay(containerId);
    const lost = this.chain(this.#ownerOf(containerId).top).find((layer) => !this.folders.isWhole(layer));
    if (lost !== undefined) {
      const path = this.folders.pathOf(lost);
      throw new EngineError('failed', `a layer of its image is missing: ${path}. Load the image again`);
    }
    this.writable.check(containerId);
    return overlay;
  }

  /** The folders of a container's changes and of the layers below. Throws `failed` when a folder is missing. */
  changesPlace(containerId: string): { upper: string; parent: string | undefined; lower: string[] } {
    const { upper } = this.#checkedOverlay(containerId);
    const { top: parent } = this.#ownerOf(containerId);
    return { upper, parent, lower: this.chain(parent).map((layer) => this.folders.pathOf(layer)) };
  }

  /**
   * Mounts the root file system of a container, so that the daemon can work on its files; `borrow` gives that of a
   * running one. A start meanwhile uses this mount.
   */
  async mountOnHost(containerId: string, borrow?: Borrow, idMap?: IdMap): Promise<HostMount> {
    return await this.#mounts.mount(this.wholeOverlay(containerId), borrow, idMap);
  }

  /** Resolves once the daemon no longer works on the files of a container. */
  async unmountedOnHost(containerId: string): Promise<void> {
    await this.#mounts.unmounted(this.writable.places(containerId).target);
  }

  /** Like `mountOnHost`, but without the mount points of a run: for the files of images. */
  async mountImageOnHost(containerId: string): Promise<AsyncDisposable & { path: string }> {
    const overlay = this.#checkedOverlay(containerId);
    const own = overlay.lower.slice(1);
    return await this.#mounts.mount({ ...overlay, lower: own.length === 0 ? [COMMON] : own });
  }

  /** Removes a container's writable layer, its files in the background. May be called twice. */
  // oxlint-disable-next-line require-await -- a promise by contract, so that errors come one way
  async remove(containerId: string): Promise<void> {
    this.#removeWritable(containerId);
  }

  #removeWritable(containerId: string): void {
    const project = this.#owners.get(containerId)?.project;
    this.writable.remove(containerId, () => {
      if (project !== undefined) this.writable.limits.forget(project);
      this.release(containerId);
    });
  }

  /** The size of the container's own files (−1 if unknown), and of its whole root file system. */
  async size(containerId: string): Promise<{ writableBytes: number; rootBytes: number }> {
    const chain = this.chain(this.#ownerOf(containerId).top);
    const imageBytes = chain.reduce((sum, layer) => sum + layer.sizeBytes, 0);
    try {
      const writableBytes = await this.writable.bytes(containerId);
      return { writableBytes, rootBytes: imageBytes + writableBytes };
    } catch (error) {
      this.#log.warn({ err: error, container: containerId }, 'cannot measure the size of a container');
      return { writableBytes: -1, rootBytes: imageBytes };
    }
  }

  /**
   * Turns an extracted folder into a layer, under a lease of the caller, who then adds its blob.
   *
   * The record comes before the files: a crash in between leaves a layer that nobody owns, which the next start removes.
   * Files without a record would be set aside.
   */
  register(path: string, layer: Omit<Layer, 'folder'>): Layer {
    const registered = { ...layer, folder: shortId(newId()) };
    this.#layers.put(registered);
    try {
      this.folders.adopt(path, registered);
    } catch (error) {
      this.#layers.delete(layer.chainId);
      throw error;
    }
    return registered;
  }

  /** Replaces the lost files of a layer, and names the blob that the caller then adds. */
  restore(path: string, known: Layer, blob: string): Layer {
    this.folders.adopt(path, known);
    if (known.blob !== blob) this.#removeBlobOf(known);
    return this.#layers.change(known.chainId, (current) => ({ ...current, blob }));
  }

  /** Keeps a layer, existing or future, until it is disposed: for work whose result will own the layer. */
  lease(chainId: string): Disposable {
    this.#leases.set(chainId, (this.#leases.get(chainId) ?? 0) + 1);
    return {
      [Symbol.dispose]: () => {
        const left = this.#leases.get(chainId)! - 1;
        if (left > 0) this.#leases.set(chainId, left);
        else this.#leases.delete(chainId);
        this.#collect(chainId);
      },
    };
  }

  /**
   * Makes an image the owner of the layers up to `top`. To be called before the image's record is stored, as `release`
   * is called after its removal: a crash in between leaves an owner without a record, which the next start releases.
   */
  own(imageId: string, top: string | undefined): void {
    this.#owners.put({ owner: imageId, kind: 'image', top });
  }

  /** Whether an image or a container with this id owns layers. */
  isOwner(id: string): boolean {
    return this.#owners.has(id);
  }

  /**
   * Releases the layers of an owner; returns the chain ids of the removed layers, topmost first. May be called twice.
   */
  release(owner: string): string[] {
    const held = this.#owners.get(owner);
    if (held === undefined) return [];
    this.#owners.delete(owner);
    return this.#collect(held.top);
  }

  /**
   * At the daemon's start: releases owners without a record, and continues interrupted removals. Folders without any
   * record are set aside, because the record may have been lost.
   */
  reconcile(containers: ReadonlySet<string>, images: ReadonlySet<string>, setAside: SetAside): void {
    for (const { owner, kind } of this.#owners.all()) {
      if ((kind === 'image' ? images : containers).has(owner)) continue;
      if (kind === 'container') this.#orGoOn(owner, () => this.#removeWritable(owner));
      else this.release(owner);
    }
    for (const { chainId } of this.#layers.all()) this.#collect(chainId);
    // A record that cannot be read may name any folder and any blob.
    const areKnown = this.#layers.idsSetAside().length === 0;
    this.folders.reconcile(areKnown ? this.all() : undefined, setAside, (path, work) => this.#orGoOn(path, work));
    const unread = this.#owners.idsSetAside();
    const isOwned = (name: string): boolean => this.#owners.get(name)?.kind === 'container' || unread.includes(name);
    this.writable.setAsideAllBut(isOwned, setAside);
    if (areKnown) this.#blobs.setAsideAllBut(new Set(this.all().map(({ blob }) => blob)), setAside);
  }

  /** A folder that cannot be moved does not keep the daemon from starting. */
  #orGoOn(what: string, remove: () => void): void {
    try {
      remove();
    } catch (error) {
      this.#log.warn({ err: error, path: what }, 'cannot remove a folder; the next start of the daemon tries again');
    }
  }

  /** Resolves when all removals so far are done. */
  async settled(): Promise<void> {
    await Promise.all([this.folders.settled(), this.writable.settled()]);
  }

  /** Stops removals in the background; the next start continues them. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.folders[Symbol.asyncDispose](), this.writable[Symbol.asyncDispose]()]);
  }

  #ownerOf(id: string): Owner {
    const owner = this.#owners.get(id);
    if (owner === undefined) throw new EngineError('failed', `${id} owns no layers`);
    return owner;
  }

  /** Removes a layer that is not needed, and then those below it. */
  #collect(top: string | undefined): string[] {
    const removed: string[] = [];
    for (let id = top; id !== undefined && !this.#isNeeded(id);) {
      const layer = this.#layers.get(id);
      if (layer === undefined) break;
      this.#discard(layer);
      removed.push(id);
      id = layer.parent;
    }
    return removed;
  }

  /** The record goes last: a crash leaves a record whose removal goes on, not files that would be set aside. */
  #discard(layer: Layer): void {
    this.folders.remove(layer, () => {
      this.#removeBlobOf(layer);
      this.#layers.delete(layer.chainId);
    });
  }

  #removeBlobOf({ chainId, blob }: Layer): void {
    const isShared = this.#layers.values().some((other) => other.chainId !== chainId && other.blob === blob);
    if (!isShared) this.#blobs.remove(blob);
  }

  /** A record that cannot be read may need any layer. */
  #isNeeded(chainId: string): boolean {
    return (
      this.#leases.has(chainId) ||
      this.#layers.idsSetAside().length > 0 ||
      this.#owners.idsSetAside().length > 0 ||
      this.#owners.values().some((owner) => owner.top === chainId) ||
      this.#layers.values().some((layer) => layer.parent === chainId)
    );
  }
}
