/* Preloaded: writes down the name of every variable that is asked for, then answers as the C library does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char *asked(const char *function, const char *name) {
    int log = open(ASKED, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log >= 0) {
        char line[256];
        size_t length = strnlen(name, sizeof line - 1);
        memcpy(line, name, length);
        line[length] = '\n';
        if (write(log, line, length + 1) < 0) _exit(99);
        close(log);
    }
    char *(*real)(const char *) = (char *(*)(const char *))dlsym(RTLD_NEXT, function);
    return real(name);
}

char *getenv(const char *name) { return asked("getenv", name); }
char *secure_getenv(const char *name) { return asked("secure_getenv", name); }
