/* Preloaded into every program of a command line. Names and addresses that a document makes up lead to
   servers of the test, as ELSEWHERE says ("10.0.0.1:8000=4001 :443=4002"); what has no place there is
   refused, so that nothing leaves this machine. The clock is ELSEWHERE_LATER seconds ahead. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

/* An address of documentation, for every name. */
#define SOMEWHERE "192.0.2.1"

typedef int look_up(const char *, const char *, const struct addrinfo *, struct addrinfo **);
typedef int to_address(int, const struct sockaddr *, socklen_t);
typedef int read_clock(clockid_t, struct timespec *);

static int is_literal(const char *name) {
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found) {
    look_up *real = (look_up *)dlsym(RTLD_NEXT, "getaddrinfo");
    if (name && strcmp(name, "localhost") != 0 && !is_literal(name)) name = SOMEWHERE;
    return real(name, service, hints, found);
}

/* The port of this machine behind "address:port", or else behind ":port"; 0 where there is none. */
static int place_of(const char *address, int port) {
    const char *places = getenv("ELSEWHERE");
    char exact[128], any[16];
    int found = 0;
    if (!places) return 0;
    snprintf(exact, sizeof exact, "%s:%d=", address, port);
    snprintf(any, sizeof any, ":%d=", port);
    while (*places) {
        if (strncmp(places, exact, strlen(exact)) == 0) return atoi(places + strlen(exact));
        if (strncmp(places, any, strlen(any)) == 0) found = atoi(places + strlen(any));
        places += strcspn(places, " ");
        places += strspn(places, " ");
    }
    return found;
}

int connect(int socket, const struct sockaddr *to, socklen_t length) {
    to_address *real = (to_address *)dlsym(RTLD_NEXT, "connect");
    char address[INET6_ADDRSTRLEN];
    if (to->sa_family == AF_INET) {
        struct sockaddr_in place = *(const struct sockaddr_in *)to;
        if (ntohl(place.sin_addr.s_addr) >> 24 == 127) return real(socket, to, length);
        inet_ntop(AF_INET, &place.sin_addr, address, sizeof address);
        int port = place_of(address, ntohs(place.sin_port));
        if (port) {
            place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            place.sin_port = htons((unsigned short)port);
            return real(socket, (struct sockaddr *)&place, sizeof place);
        }
    } else if (to->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)to;
        if (IN6_IS_ADDR_LOOPBACK(&six->sin6_addr)) return real(socket, to, length);
    } else {
        return real(socket, to, length);
    }
    errno = ECONNREFUSED;
    return -1;
}

/* An own address that a document makes up is the loopback address. */
int bind(int socket, const struct sockaddr *to, socklen_t length) {
    to_address *real = (to_address *)dlsym(RTLD_NEXT, "bind");
    if (to->sa_family != AF_INET) return real(socket, to, length);
    struct sockaddr_in place = *(const struct sockaddr_in *)to;
    if (ntohl(place.sin_addr.s_addr) >> 24 != 127) place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return real(socket, (struct sockaddr *)&place, sizeof place);
}

static time_t later(void) {
    const char *seconds = getenv("ELSEWHERE_LATER");
    return seconds ? (time_t)atol(seconds) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    read_clock *real = (read_clock *)dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += later();
    return result;
}
