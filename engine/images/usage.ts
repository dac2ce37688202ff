/** Lists the containers of an image: a function of the containers domain, passed in at the start. */
export type ImageUsage = Readonly<{
  usedBy(imageId: string): readonly { id: string; running: boolean }[];
  /** The number of containers of each image that has some. */
  counts(): ReadonlyMap<string, number>;
}>;
