/*
 * Preloaded into programs in the guest: they read the clock, and ask who they are, far more often than they need.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * In the guest reading the clock is a system call, and every other one that clients, servers and libraries make is for it.
 * Time passes there only while all sleep, so a reading is good until this thread next does something that may sleep. One
 * reading in REREAD is made all the same: it takes 256 ns of virtual time, without which a loop that waits for time to
 * pass would last for ever.
 */
enum { REREAD = 64 };
static __thread struct { struct timespec time; int left; } clocks[CLOCK_MONOTONIC + 1];

static void forget_time(void)
{
	clocks[CLOCK_REALTIME].left = clocks[CLOCK_MONOTONIC].left = 0;
}

int clock_gettime(clockid_t id, struct timespec *time)
{
	int status;

	if (id > CLOCK_MONOTONIC || id < 0)
		return syscall(SYS_clock_gettime, id, time);
	if (clocks[id].left-- <= 0) {
		status = syscall(SYS_clock_gettime, id, &clocks[id].time);
		if (status)
			return status;
		clocks[id].left = REREAD;
	}
	*time = clocks[id].time;
	return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	struct timespec now;

	(void)zone; /* obsolete, see gettimeofday(2) */
	clock_gettime(CLOCK_REALTIME, &now);
	time->tv_sec = now.tv_sec;
	time->tv_usec = now.tv_nsec / 1000;
	return 0;
}

/* The calls in which these programs sleep. */
#define SLEEPS(name, parameters, ...)                                                     \
	int name parameters                                                               \
	{                                                                                 \
		static int (*original) parameters;                                        \
		int status;                                                               \
                                                                                          \
		if (!original)                                                            \
			original = dlsym(RTLD_NEXT, #name);                               \
		status = original(__VA_ARGS__);                                           \
		forget_time();                                                            \
		return status;                                                            \
	}

SLEEPS(epoll_wait, (int epoll, struct epoll_event *events, int most, int timeout), epoll, events, most, timeout)
SLEEPS(poll, (struct pollfd *fds, nfds_t count, int timeout), fds, count, timeout)
SLEEPS(select, (int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict bad, struct timeval *restrict timeout),
       count, in, out, bad, timeout)
SLEEPS(nanosleep, (const struct timespec *time, struct timespec *left), time, left)
SLEEPS(clock_nanosleep, (clockid_t id, int flags, const struct timespec *time, struct timespec *left), id, flags, time, left)
SLEEPS(connect, (int socket, const struct sockaddr *address, socklen_t length), socket, address, length)
SLEEPS(waitpid, (pid_t child, int *status_of, int options), child, status_of, options)
SLEEPS(wait4, (pid_t child, int *status_of, int options, struct rusage *used), child, status_of, options, used)

ssize_t read(int file, void *data, size_t most)
{
	ssize_t count = syscall(SYS_read, file, data, most);

	forget_time();
	return count;
}

/* libzmq asks before each of its commands whether this is still the process that made the socket. */
static pid_t process;

static void ask_again(void)
{
	process = 0;
}

pid_t getpid(void)
{
	if (!process) {
		pthread_atfork(NULL, NULL, ask_again);
		process = syscall(SYS_getpid);
	}
	return process;
}
