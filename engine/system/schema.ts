import { Type, type Static } from 'typebox';

import { SwarmInfo } from '../cluster/info.ts';

const text = Type.String();
const number = Type.Integer();
const flag = Type.Boolean();
const orNull = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()]);

export const Version = Type.Object({
  Platform: Type.Object({ Name: text }),
  Components: Type.Array(Type.Object({ Name: text, Version: text, Details: Type.Record(text, text) })),
  Version: text,
  ApiVersion: text,
  MinAPIVersion: text,
  GitCommit: text,
  GoVersion: Type.String({ description: 'the version of Node, in which the daemon is written' }),
  Os: text,
  Arch: text,
  KernelVersion: text,
  BuildTime: text,
  Experimental: flag,
});
export type Version = Static<typeof Version>;

const Commit = Type.Object({ ID: text, Expected: text });
const Index = Type.Object({ Name: text, Mirrors: Type.Array(text), Secure: flag, Official: flag });

/** The specification's fields first, then those of dockerd 20.10 at this version that its command line prints. */
export const Info = Type.Object({
  Architecture: text,
  ClusterStore: text,
  CgroupDriver: text,
  Containers: number,
  ContainersRunning: number,
  ContainersStopped: number,
  ContainersPaused: number,
  CpuCfsPeriod: flag,
  CpuCfsQuota: flag,
  Debug: flag,
  EngineRootDir: text,
  Driver: text,
  DriverStatus: Type.Array(Type.Array(text)),
  ExperimentalBuild: flag,
  HttpProxy: text,
  HttpsProxy: text,
  ID: text,
  IPv4Forwarding: flag,
  Images: number,
  IndexServerAddress: text,
  InitPath: text,
  InitSha1: text,
  KernelMemory: flag,
  KernelVersion: text,
  Labels: Type.Array(text),
  MemTotal: number,
  MemoryLimit: flag,
  NCPU: number,
  NEventsListener: number,
  NFd: number,
  NGoroutines: number,
  Name: text,
  NoProxy: text,
  OomKillDisable: flag,
  OSType: text,
  OperatingSystem: text,
  Plugins: Type.Object({
    Volume: Type.Array(text),
    Network: Type.Array(text),
    Authorization: orNull(Type.Array(text)),
    Log: Type.Array(text),
  }),
  RegistryConfig: Type.Object({
    IndexConfigs: Type.Record(text, Index),
    InsecureRegistryCIDRs: Type.Array(text),
    Mirrors: Type.Array(text),
    AllowNondistributableArtifactsCIDRs: Type.Array(text),
    AllowNondistributableArtifactsHostnames: Type.Array(text),
  }),
  SecurityOptions: Type.Array(text),
  ServerVersion: text,
  SwapLimit: flag,
  SystemStatus: orNull(Type.Array(Type.Array(text))),
  SystemTime: text,

  BridgeNfIp6tables: flag,
  BridgeNfIptables: flag,
  CgroupVersion: text,
  ClusterAdvertise: text,
  ContainerdCommit: Commit,
  CPUSet: flag,
  CPUShares: flag,
  DefaultAddressPools: Type.Optional(Type.Array(Type.Object({ Base: text, Size: number }))),
  DefaultRuntime: text,
  DockerRootDir: text,
  ExecutionDriver: text,
  FirewallBackend: Type.Object({ Driver: text }),
  GenericResources: Type.Union([
    Type.Null(),
    Type.Array(Type.Object({}, { description: 'Of this node, for services' })),
  ]),
  InitBinary: text,
  InitCommit: Commit,
  Isolation: text,
  KernelMemoryTCP: flag,
  LiveRestoreEnabled: flag,
  LoggingDriver: text,
  OSVersion: text,
  PidsLimit: flag,
  RuncCommit: Commit,
  Runtimes: Type.Record(
    text,
    Type.Object({
      path: text,
      runtimeArgs: Type.Optional(Type.Array(text)),
      status: Type.Optional(Type.Record(text, text)),
    }),
  ),
  Swarm: SwarmInfo,
  Warnings: orNull(Type.Array(text)),
  CDISpecDirs: Type.Array(text),
  DiscoveredDevices: orNull(Type.Array(Type.Object({ Source: text, ID: text }))),
});
export type Info = Static<typeof Info>;
