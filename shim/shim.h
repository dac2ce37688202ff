/* gantry-shim: the parent of one container, or of one exec'd process. See engine/runtime/README.md for its protocol. */
#ifndef SHIM_H
#define SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROTOCOL_VERSION 1
#define CHUNK (64 * 1024)         /* bytes that are read from the container at once */
#define CLIENT_BUFFER (256 * 1024) /* bytes that wait for one client; what is behind that is read from the log */
#define LINE_LIMIT (16 * 1024)    /* longer lines are split in the log, as docker splits them */

enum stream { STDOUT = 1, STDERR = 2 };
enum phase { WAITING, STARTING, RUNNING, DRAINING, EXITED, FAILED };

struct options {
    const char *id, *directory, *runtime, *runtime_root;
    const char *exec_container; /* not NULL: the process of an exec */
    const char *rootfs_base, *rootfs_options, *rootfs_target;
    const char *log_path, *cgroup;
    int64_t log_max_bytes; /* 0: no rotation */
    int log_max_files;
    bool tty, stdin_open, stdin_once;
};

/* One file of the log. Rotation starts a new one; a client that still reads the old one keeps it open. */
struct generation {
    int fd;
    off_t end;
    int references;
    struct generation *next;
};

struct client {
    int fd;
    enum { HANDSHAKE, CONTROL, ATTACHED } kind;
    char line[256]; /* the handshake or command that is being read */
    size_t line_length;
    bool wants_stdin, wants_stdout, wants_stderr, follows;
    bool reading_ended, hung_up, dead;
    unsigned char *buffer; /* a ring */
    size_t start, length;
    struct generation *replay; /* not NULL: it reads the log until it is level with the present */
    off_t replay_offset;
    size_t skip[3]; /* bytes after the log's end that it has already */
    uint32_t interest;
    struct client *next;
};

extern struct options options;
extern enum phase phase;
extern struct client *clients;
extern int epoll_fd;

/* main.c */
void fail(const char *what) __attribute__((noreturn));
void watch(int fd, uint32_t events, void *tag);
void rewatch(int fd, uint32_t events, void *tag);
void unwatch(int fd);
int64_t now_ns(void);
void close_fd(int *fd);
void *output_tag(enum stream stream);
void *stdin_tag(void);
void init_ended(int status);
void describe_exit(char *text, size_t size);
#define AUTO_CLOSE __attribute__((cleanup(close_fd)))

/* rootfs.c */
void enter_own_mounts(void);

/* process.c */
extern pid_t init_pid;
extern int output_fds[3]; /* by stream; the terminal is STDOUT */
extern int64_t started_ns;
extern char console_tag;
extern bool runtime_busy; /* the runtime is creating or deleting the container */
extern bool deleted;
void prepare_streams(void);
void start_runtime(void);
void delete_container(void);
void child_ended(pid_t pid, int status);
void accept_console(void);
int signal_init(int number);
void resize_terminal(int width, int height);
void feed_stdin(const unsigned char *bytes, size_t length);
bool stdin_has_room(void);
void flush_stdin(void);
void end_stdin(void);
void close_streams(void);
void cancel_runtime(void);

/* oom.c */
extern char oom_tag;
void watch_oom(void);
void oom_event(void);
bool was_oom_killed(void);

/* status.c */
void write_status(int code, int signal, bool oom, int64_t time_ns);

/* log.c */
extern struct generation *current_log;
void open_log(void);
void log_output(enum stream stream, const unsigned char *bytes, size_t length);
void log_finish(void);
size_t log_pending(enum stream stream, const unsigned char **bytes);
struct generation *oldest_log(void);
struct generation *hold(struct generation *generation);
void let_go(struct generation *generation);

/* replay.c */
bool replay(struct client *client);

/* clients.c */
void listen_for_clients(void);
void accept_client(void);
void client_readable(struct client *client, uint32_t events);
void client_writable(struct client *client);
void send_output(enum stream stream, const unsigned char *bytes, size_t length);
bool clients_have_room(void);
size_t client_room(const struct client *client);
void queue_frame(struct client *client, enum stream stream, const unsigned char *bytes, size_t length);
bool client_takes(const struct client *client, enum stream stream);
void tell_controls(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sweep_clients(void);
void update_interests(void);
int count_clients(int kind);
extern char listener_tag;
extern bool released;

#endif
