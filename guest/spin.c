/*
 * Preloaded into programs in the guest whose libraries wait in a loop without sleeping. With time-travel=inf-cpu such a
 * loop takes (next to) no virtual time, so it lasts for ever, or for a thousand times as long as it would.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

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
