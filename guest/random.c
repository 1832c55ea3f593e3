/*
 * getrandom(2) for the guest's kernel, preloaded into User-Mode Linux: a stream that depends on GUEST_SEED alone, so that
 * a guest's random pool, and with it everything that happens in the guest, repeats. SplitMix64 (Steele, Lea, Flood 2014).
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	static uint64_t state;
	static int seeded;
	unsigned char *bytes = buffer;

	(void)flags;
	if (!seeded) {
		const char *seed = getenv("GUEST_SEED");

		if (!seed)
			abort();
		state = strtoull(seed, NULL, 10);
		seeded = 1;
	}
	for (size_t i = 0; i < length; i++) {
		uint64_t z = state += 0x9e3779b97f4a7c15u;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		bytes[i] = z ^ (z >> 31);
	}
	return length;
}
