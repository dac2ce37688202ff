// gantry-shim: the parent of one container, or of one exec'd process. See engine/runtime/README.md for its protocol.
#ifndef SHIM_H
#define SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loop/loop.h"

#define PROTOCOL_VERSION 1
#define NETNS_FD 3
#define CONTROL_FD 4            // the daemon's first control connection is inherited
#define USERNS_FD 5             // the container's user namespace, if it has one
#define CHUNK (64 * 1024)       // bytes that are read from the container at once
#define PIPE_BYTES (256 * 1024) // fewer switches between the container and us
#define FLOOD_BYTES (32 * 1024) // this much within FLOOD_NS is a flood: then small pieces are read together
#define FLOOD_NS 1000000
#define FLOOD_PAUSE_NS 200000
#define CLIENT_BUFFER (128 * 1024) // buffered bytes for one client; beyond that it reads from the log
#define LINE_LIMIT (16 * 1024)     // longer lines are split in the log, as docker splits them
#define HELD_LOG_BYTES (1LL << 30) // removed files of the log that slow clients may keep: then they hold up
#define HELD_LOG_FILES 512
#define RUNTIME_SECONDS 60     // a runtime that takes longer is stuck
#define PROBE_OUTPUT 4096      // bytes of a health check that are kept; as dockerd
#define PROBE_GRACE_SECONDS 10 // from SIGTERM to SIGKILL for one that takes too long; as dockerd
#define DRAIN_SECONDS 2        // after the exit, when another process keeps the output open; as dockerd

enum stream { STDIN, STDOUT, STDERR };
enum phase { WAITING, STARTING, RUNNING, DRAINING, EXITED, FAILED };

// A mount that the runtime then finds at `target`: a path inside of `source`, on which `overlay` is mounted before, if any.
struct place {
  const char *source, *overlay, *subpath, *target;
  bool mapped; // its owners are ids of the container
};

struct options {
  const char *id, *directory, *runtime, *runtime_root;
  const char *runtime_hidden; // a mount that the runtime must not see
  const char *exec_container; // not NULL: the process of an exec
  const char *exec_oom_score;
  const char *rootfs_base, *rootfs_options, *rootfs_target;
  const char *mapped_root, *userns_of; // "uid:gid" on the host of the container's root; a process whose namespace is shared
  const char **mapped;                 // folders that are mapped while the root is mounted
  size_t mapped_count;
  const char *memory_of, *memory_target; // a process whose /dev/shm is shared
  struct place *places;
  size_t place_count;
  const char *files_target;              // an empty folder, for files that the daemon writes into memory
  const char *log_path, *log_attributes, *cgroup;
  int64_t log_max_bytes; // 0: no rotation
  int64_t log_number;    // of the next line, at least; 0: lines have no numbers
  int log_max_files, runtime_seconds;
  bool log_compress; // rotated files
  bool tty, stdin_open, stdin_once, netns, systemd_cgroup;
};
extern struct options options;

// arguments.c
void parse_arguments(int argc, char **argv);

// life-events.c: children and deadlines beside the descriptors of loop/loop.h. Failures of `_surely` end the shim.
void watch_surely(struct watch *watch, int fd, uint32_t events, void (*ready)(struct watch *, uint32_t));
void change_surely(struct watch *watch, uint32_t events);
void wait_for_events(void);
void watch_children(void (*ended)(pid_t pid, int status));
// One of each: what `passed` means depends on the phase. 0: none.
enum deadline { OF_LIFE, OF_PROBE, DEADLINES };
void set_deadline(enum deadline which, int64_t milliseconds, void (*passed)(void));
int64_t now_ns(void);

void fail(const char *what) __attribute__((noreturn));
void fail_missing(const char *path) __attribute__((noreturn)); // a client's path: the daemon names it in its answer

// rootfs.c
void enter_own_mounts(void);
void mount_root(void);
void show_mapped_root(void);
void mount_files(void);

// user-namespace.c
int make_namespaces(int count, char **words);
void take_user_namespace(void);
void map_folders(void);
void unmap_folders(void);
int open_mapped(const char *source, bool recursive);
bool mount_mapped(const char *source, const char *target);
void mount_overlay_as_mapped(const char *target, unsigned long flags, const char *text);
int open_null(void);

// places.c
void mount_places(void);

// shared-memory.c
void borrow_memory(void);

// life.c: from waiting to exited
extern enum phase phase;
extern bool gone; // nothing is left of the container, and our directory is not ours any more
void begin_start(void);
bool abandon(void);
void runtime_started(pid_t pid);
void runtime_failed(const char *reason);
void runtime_deleted(void);
void output_ended(void);
void child_ended(pid_t pid, int status);
int signal_process(int number);
pid_t session_of_container(void);
void describe_state(char *text, size_t size);

// runtime.c
struct runtime_call {
  const char *const *arguments;
  int ends[3];           // its streams, -1: nothing
  const char *oom_score; // of the process that it starts; NULL: the usual one
  const char *log;
};
pid_t spawn_runtime(const struct runtime_call *call);
pid_t read_pid_file(const char *name);
void run_runtime(void);
void delete_container(void);
void kill_runtime(void);
bool runtime_child_ended(pid_t pid, int status);

// remains.c: kills and removes the remains of a runtime; returns whether none were found
bool clear_remains(void);
void kill_session(pid_t session);

// probe.c: a health check, which is a second process in the container
int begin_probe(int id, int64_t milliseconds, int oom_score);
void cancel_probe(void);
bool probe_child_ended(pid_t pid, int status);

// streams.c
void prepare_streams(void);
int child_end(enum stream stream); // input of the process, -1: nothing
void close_child_ends(void);
void drain_output(void);
void update_output(void); // reads or waits, as the clients allow
void close_streams(void);
void take_terminal(int master);
int terminal(void);
void feed_stdin(const unsigned char *bytes, size_t length);
bool stdin_has_room(void);
void end_stdin(void);

// terminal.c
void listen_for_terminal(void);
void receive_console(void);
void resize_terminal(int width, int height);
void forget_terminal(void);

// oom.c
void spare_from_oom(void);
void restore_oom_score(const char *wanted);
void watch_oom(void);
bool was_oom_killed(void);

// status.c
void forget_last_run(void);
bool write_status(const char *text);

// log/files.c: the files of the json-file log
struct generation { // one file of it; rotation starts a new one, clients that still read the old one keep it open
  int fd;
  off_t end;
  int references;
  bool retired;
  bool packed; // compressed: `unpacked` before it is read
  struct generation *next;
};
extern struct generation *current_log;
void open_log(void);
void log_flush(void);
void rotate_when_due(void);
struct generation *oldest_log(void);
struct generation *hold(struct generation *generation);
void let_go(struct generation *generation);
bool log_is_held_up(void);
void rotated_name(char *name, int number, const char *ending);

// log/log.c: output as lines of the log
void log_output(enum stream stream, const unsigned char *bytes, size_t length);
void log_finish(void);
size_t log_pending(enum stream stream, const unsigned char **bytes);

// log/compress.c: rotated files
void compress_rotated(void);
bool compressor_ended(pid_t pid, int status);
int unpacked(int packed); // -1: it cannot be read

// log/json.c: the text of log entries, before it is written
#define ATTRIBUTES_LIMIT (100 * 1024)
#define ENTRY_LIMIT (LINE_LIMIT * 8 + ATTRIBUTES_LIMIT + 512) // all escaped, and once more as base64
#define JSON_BATCH (64 * 1024)
extern unsigned char json[JSON_BATCH + ENTRY_LIMIT];
extern size_t json_length;
#define PUT(text) put(text, sizeof(text) - 1)
void put(const void *bytes, size_t length);
bool put_escaped(const unsigned char *s, size_t length);
void put_base64(const unsigned char *s, size_t length);
size_t whole_sequences(const unsigned char *s, size_t length);

// clients/clients.c: connections
struct client {
  struct watch watch; // first: a watch is its client
  enum { HANDSHAKE, CONTROL, ATTACHED } kind;
  char line[256]; // the handshake or command that is being read
  size_t line_length;
  bool takes[3]; // by stream; STDIN: it gives
  bool follows, input_ended, output_ended, dead;
  unsigned char *buffer; // a ring of what it has not taken yet
  size_t capacity, start, length;
  struct generation *replay; // not NULL: it reads the log until it is level with the present
  off_t replay_offset;
  size_t skip[3]; // bytes after the log's end that it has already
  struct client *next;
};
void listen_for_clients(void);
void stop_listening(void);
void add_client(int fd, bool is_control);
void send_output(enum stream stream, const unsigned char *bytes, size_t length);
bool clients_have_room(void);
void settle_clients(void);
bool has_clients(bool control);
void tell_controls(const char *text);
void client_attach(struct client *client, bool logs);

// clients/client-output.c: output that one of them has not taken yet
void client_tell(struct client *client, const char *text);
size_t client_room(const struct client *client);
void client_queue(struct client *client, enum stream stream, const unsigned char *bytes, size_t length, bool push);
void client_flush(struct client *client);
void client_shrink(struct client *client);
void client_lose(struct client *client);

// control.c: the lines of a connection
extern bool released;
void handle_line(struct client *client);
void greet_control(struct client *client);

// clients/replay.c
bool replay(struct client *client);
void end_replays(void);

#endif
