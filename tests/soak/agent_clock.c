// Copyright (c) 2026 nodeops.dra contributors
// SPDX-License-Identifier: Apache-2.0
//
// Loaded with LD_PRELOAD, this shifts the wall clock of a process, and no other clock, by the seconds in the file that
// the variable SOAK_CLOCK names.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void)
{
    char text[32] = "";
    const char *path = getenv("SOAK_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return 0;
    if (read(file, text, sizeof text - 1) < 0)
        text[0] = 0;
    close(file);
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += shift();
    return result;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec found;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where)
{
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (where)
        *where = found.tv_sec;
    return found.tv_sec;
}
