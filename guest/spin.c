/*
 * Preloaded into programs in the guest whose libraries wait in a loop without sleeping, or read the clock all the time.
 * With time-travel=inf-cpu such a loop takes (next to) no virtual time, so it lasts for ever, or for a thousand times as
 * long as it would.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/*
 * libnorm starts a thread and then spins until it has run. So sleep, for the shortest time, in the first
 * pthread_mutex_unlock() after a pthread_create(): not in pthread_create() itself, for the new thread first needs a
 * mutex that its maker still holds.
 */
static __thread bool created;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
	int status = create(thread, attributes, start, argument);

	created = status == 0;
	return status;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static int (*unlock)(pthread_mutex_t *);
	int status;

	if (!unlock)
		unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	status = unlock(mutex);
	if (created) {
		created = false;
		nanosleep(&(struct timespec){ .tv_nsec = 1000 }, NULL);
	}
	return status;
}

/*
 * libzmq cuts the time until libpgm's next step down to whole milliseconds, and so spins for what is left of the last
 * one. So round it up.
 */
enum { TIME_REMAIN = 0x2005, RATE_REMAIN = 0x2006 }; /* PGM_TIME_REMAIN, PGM_RATE_REMAIN of libpgm's pgm/socket.h */

bool pgm_getsockopt(void *sock, int level, int name, void *value, socklen_t *length)
{
	static bool (*get)(void *, int, int, void *, socklen_t *);
	bool ok;

	if (!get)
		get = dlsym(dlopen("libpgm-5.3.so.0", RTLD_LAZY), "pgm_getsockopt");
	ok = get(sock, level, name, value, length);
	if (ok && (name == TIME_REMAIN || name == RATE_REMAIN)) {
		struct timeval *left = value;
		long milliseconds = left->tv_sec * 1000 + (left->tv_usec + 999) / 1000;

		left->tv_sec = milliseconds / 1000;
		left->tv_usec = milliseconds % 1000 * 1000;
	}
	return ok;
}

/*
 * In the guest reading the clock is a system call, and libpgm, libnorm and libzmq do it several times for every packet.
 * Time passes there only while all sleep, so in a thread of theirs a reading is good until the thread next may sleep,
 * which all of them do in epoll_wait() or poll(). One reading in REREAD is made all the same: a reading takes 256 ns of
 * virtual time, without which a loop that waits for time to pass would last for ever. The main thread is the program's
 * own and reads the clock itself.
 */
enum { REREAD = 64 };
static __thread struct { struct timespec time; int left; } clocks[CLOCK_MONOTONIC + 1];

static bool is_library_thread(void)
{
	static __thread signed char known;

	if (!known)
		known = syscall(SYS_gettid) == getpid() ? -1 : 1;
	return known > 0;
}

static void forget_time(void)
{
	clocks[CLOCK_REALTIME].left = clocks[CLOCK_MONOTONIC].left = 0;
}

int clock_gettime(clockid_t id, struct timespec *time)
{
	int status;

	if (id > CLOCK_MONOTONIC || id < 0 || !is_library_thread())
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

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
	int status = syscall(SYS_epoll_wait, epoll, events, most, timeout);

	forget_time();
	return status;
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	int status = syscall(SYS_poll, fds, count, timeout);

	if (timeout)
		forget_time();
	return status;
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
