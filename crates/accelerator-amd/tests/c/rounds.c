/* SPDX-License-Identifier: Apache-2.0
 *
 * rounds LIBRARY ROUNDS: calls every function that reads, ROUNDS times, with a Shutdown and an Init at each tenth, as
 * hypervisors that end and start. Prints the number of devices, how long AccelGetDeviceMetrics of all of them took,
 * and how much memory the process has after a tenth of the rounds and after all.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi.h"

static Provider provider;
static ExtendedDeviceInfo devices[MAX_TOPOLOGY_DEVICES];
static ExtendedDeviceTopology topology;
static DeviceMetrics metrics[MAX_DEVICE_UUIDS];
static ProcessInformation processes[MAX_PROCESSES];
static MountPath mounts[4];

static double milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static long resident_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmRSS: %ld kB", &kib) == 1)
            break;
    if (status)
        fclose(status);
    return kib;
}

static int less(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void succeed(AccelResult result, const char *name)
{
    if (result != ACCEL_SUCCESS) {
        fprintf(stderr, "%s gives %d\n", name, (int)result);
        exit(1);
    }
}

int main(int count, char **arguments)
{
    long rounds = count == 3 ? atol(arguments[2]) : 0;
    if (rounds < 10) {
        fprintf(stderr, "usage: rounds LIBRARY ROUNDS (at least 10)\n");
        return 2;
    }
    const char *missing = provider_load(arguments[1], &provider);
    if (missing) {
        fprintf(stderr, "%s: %s\n", arguments[1], missing);
        return 1;
    }
    double *took = calloc(rounds, sizeof *took);
    const char *uuids[MAX_DEVICE_UUIDS];
    size_t found = 0, known, others;
    long early = 0;
    for (long round = 0; round < rounds; round++) {
        if (round % 10 == 0)
            succeed(provider.Init(), "Init");
        succeed(provider.GetDeviceCount(&known), "GetDeviceCount");
        succeed(provider.GetAllDevices(devices, MAX_TOPOLOGY_DEVICES, &found), "GetAllDevices");
        succeed(provider.GetTopology(&topology), "GetTopology");
        for (size_t place = 0; place < found; place++)
            uuids[place] = devices[place].basic.uuid;
        double begun = milliseconds();
        succeed(provider.GetDeviceMetrics(uuids, found, metrics), "GetDeviceMetrics");
        took[round] = milliseconds() - begun;
        succeed(provider.GetProcessInformation(processes, MAX_PROCESSES, &others), "GetProcessInformation");
        succeed(provider.GetVendorMountLibs(mounts, 4, &others), "GetVendorMountLibs");
        if (round % 10 == 9)
            succeed(provider.Shutdown(), "Shutdown");
        if (round == rounds / 10)
            early = resident_kib();
    }
    qsort(took, rounds, sizeof *took, less);
    printf("{\"devices\": %zu, \"metrics_ms\": {\"median\": %.3f, \"p99\": %.3f}, \"resident_kib\": [%ld, %ld]}\n", found,
           took[rounds / 2], took[rounds * 99 / 100], early, resident_kib());
    free(took);
    return 0;
}
