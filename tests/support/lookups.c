/* Preloaded into a program: notes each name it looks up, and knows one that nobody else knows. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int look_up(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found) {
    look_up *real = (look_up *)dlsym(RTLD_NEXT, "getaddrinfo");
    const char *log = getenv("LOOKUPS_LOG");
    const char *known = getenv("LOOKUPS_KNOWN");
    FILE *file = log && name ? fopen(log, "a") : NULL;
    if (file) {
        fprintf(file, "%s\n", name);
        fclose(file);
    }
    if (known && name && strcmp(known, name) == 0) name = "127.0.0.1";
    return real(name, service, hints, found);
}
