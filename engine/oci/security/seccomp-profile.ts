/**
 * The system calls of a container by default: those that dockerd 20.10 lets pass, found by asking it for the bundles of
 * containers with each capability. Names that an architecture does not have are passed over.
 */

const words = (text: string): readonly string[] => text.trim().split(/\s+/);

/** With any capabilities. */
export const ALWAYS = words(`
  _llseek _newselect accept accept4 access adjtimex alarm arch_prctl bind brk capget capset chdir chmod chown
  chown32 clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64
  clock_nanosleep clock_nanosleep_time64 close close_range connect copy_file_range creat dup dup2 dup3
  epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd
  eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fadvise64_64 fallocate fanotify_mark
  fchdir fchmod fchmodat fchown fchown32 fchownat fcntl fcntl64 fdatasync fgetxattr flistxattr flock fork
  fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futex futex_time64
  futex_waitv futimesat get_robust_list get_thread_area getcpu getcwd getdents getdents64 getegid getegid32
  geteuid geteuid32 getgid getgid32 getgroups getgroups32 getitimer getpeername getpgid getpgrp getpid getppid
  getpriority getrandom getresgid getresgid32 getresuid getresuid32 getrlimit getrusage getsid getsockname
  getsockopt gettid gettimeofday getuid getuid32 getxattr inotify_add_watch inotify_init inotify_init1
  inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64 io_setup io_submit
  io_uring_enter io_uring_register io_uring_setup ioctl ioprio_get ioprio_set ipc kill landlock_add_rule
  landlock_create_ruleset landlock_restrict_self lchown lchown32 lgetxattr link linkat listen listxattr llistxattr
  lremovexattr lseek lsetxattr lstat lstat64 madvise membarrier memfd_create memfd_secret mincore mkdir mkdirat
  mknod mknodat mlock mlock2 mlockall mmap mmap2 modify_ldt mprotect mq_getsetattr mq_notify mq_open
  mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink mremap msgctl msgget msgrcv
  msgsnd msync munlock munlockall munmap nanosleep newfstatat open openat openat2 pause pidfd_open
  pidfd_send_signal pipe pipe2 poll ppoll ppoll_time64 prctl pread64 preadv preadv2 prlimit64 process_mrelease
  pselect6 pselect6_time64 ptrace pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recv recvfrom
  recvmmsg recvmmsg_time64 recvmsg remap_file_pages removexattr rename renameat renameat2 restart_syscall rmdir
  rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
  rt_sigtimedwait_time64 rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity
  sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64
  sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select semctl semget semop
  semtimedop semtimedop_time64 send sendfile sendfile64 sendmmsg sendmsg sendto set_robust_list set_thread_area
  set_tid_address setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setitimer setpgid
  setpriority setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit setsid
  setsockopt setuid setuid32 setxattr shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4
  sigprocmask sigreturn socket socketcall socketpair splice stat stat64 statfs statfs64 statx symlink symlinkat
  sync sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime
  timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime
  timerfd_settime64 times tkill truncate truncate64 ugetrlimit umask uname unlink unlinkat utime utimensat
  utimensat_time64 utimes vfork vmsplice wait4 waitid waitpid write writev
  arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls sync_file_range2
`);

/** In addition, with one of these capabilities. */
export const WITH_CAPABILITY: Readonly<Record<string, readonly string[]>> = {
  CAP_SYS_CHROOT: ['chroot'],
  CAP_SYS_ADMIN: words(`
  bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount mount_setattr move_mount
  name_to_handle_at open_tree perf_event_open quotactl quotactl_fd setdomainname sethostname setns syslog umount
  umount2 unshare
`),
  CAP_SYS_BOOT: ['reboot'],
  CAP_SYS_MODULE: ['delete_module', 'finit_module', 'init_module'],
  CAP_SYS_PACCT: ['acct'],
  CAP_SYS_PTRACE: ['kcmp', 'pidfd_getfd', 'process_madvise', 'process_vm_readv', 'process_vm_writev'],
  CAP_SYS_RAWIO: ['ioperm', 'iopl'],
  CAP_SYS_TIME: ['clock_settime', 'settimeofday', 'stime'],
  CAP_SYS_TTY_CONFIG: ['vhangup'],
  CAP_SYS_NICE: ['get_mempolicy', 'mbind', 'set_mempolicy'],
  CAP_SYSLOG: ['syslog'],
  CAP_DAC_READ_SEARCH: ['open_by_handle_at'],
};

/** The execution domains that a process may choose: Linux, old inode sizes, 32 bits, both, and asking. */
export const PERSONALITIES = [0x0, 0x0008, 0x20000, 0x20008, 0xffffffff] as const;

/** Flags of clone that make namespaces, which need CAP_SYS_ADMIN. */
export const NAMESPACE_FLAGS = 0x7e020000;
