/* SPDX-License-Identifier: Apache-2.0
 *
 * edges LIBRARY: calls the library where programs seldom do: in a thread with a stack of 64 KiB, and in children of a fork
 * while another thread of the parent calls. Each call succeeds within five seconds, or the program says what did not and
 * exits with 1.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi.h"

static Provider provider;
static volatile int end;

/* Calls every function that reads; the number of devices, or -1. */
static long round_of_calls(void)
{
    size_t count = 0, others = 0;
    ExtendedDeviceInfo *devices = calloc(64, sizeof *devices);
    ProcessInformation *processes = calloc(64, sizeof *processes);
    DeviceMetrics *metrics = calloc(64, sizeof *metrics);
    const char *uuids[64];
    int good = devices && processes && metrics && provider.GetAllDevices(devices, 64, &count) == CODE(SUCCESS);
    for (size_t place = 0; good && place < count; place++)
        uuids[place] = devices[place].basic.uuid;
    good = good && provider.GetDeviceMetrics(uuids, count, metrics) == CODE(SUCCESS);
    good = good && provider.GetProcessInformation(processes, 64, &others) == CODE(SUCCESS);
    free(devices);
    free(processes);
    free(metrics);
    return good ? (long)count : -1;
}

static void *calls_on(void *nothing)
{
    (void)nothing;
    while (!end)
        round_of_calls();
    return NULL;
}

static void *calls_once(void *answer)
{
    *(long *)answer = round_of_calls();
    return NULL;
}

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    _exit(1);
}

int main(int count, char **arguments)
{
    pthread_t thread;
    pthread_attr_t small;
    long answer = -1, expected;
    const char *missing = count == 2 ? provider_load(arguments[1], &provider) : "usage: edges LIBRARY";
    if (missing)
        fail(missing);
    expected = round_of_calls();
    if (expected < 1)
        fail("there is no device");

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    if (pthread_create(&thread, &small, calls_once, &answer) || pthread_join(thread, NULL) || answer != expected)
        fail("a thread with a small stack does not see the devices");

    alarm(60);
    pthread_create(&thread, NULL, calls_on, NULL);
    for (int turn = 0; turn < 50; turn++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(5);
            _exit(round_of_calls() == expected ? 0 : 1);
        }
        int status = -1;
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail("a child of a fork does not see the devices within five seconds");
    }
    end = 1;
    pthread_join(thread, NULL);
    printf("%ld devices at each edge\n", expected);
    return 0;
}
