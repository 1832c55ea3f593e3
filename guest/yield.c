/*
 * For programs in the guest that start a thread and then spin, without sleeping, until it has run (libnorm's dispatcher
 * does). With time-travel=inf-cpu nothing interrupts such a loop: it takes no virtual time, so the thread's turn never
 * comes. Preloaded, this sleeps for the shortest time in the first pthread_mutex_unlock() after a pthread_create(): not
 * in pthread_create() itself, for the new thread may first need a mutex that its maker still holds.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int unlock_fn(pthread_mutex_t *);

static __thread int created;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
	create_fn *create = (create_fn *)dlsym(RTLD_NEXT, "pthread_create");
	int status = create(thread, attributes, start, argument);

	created = status == 0;
	return status;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static unlock_fn *unlock;
	int status;

	if (!unlock)
		unlock = (unlock_fn *)dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	status = unlock(mutex);
	if (created) {
		created = 0;
		nanosleep(&(struct timespec){ .tv_nsec = 1000 }, NULL);
	}
	return status;
}
