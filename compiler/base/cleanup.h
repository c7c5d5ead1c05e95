/* Cleanup: what must not outlive this process when a signal ends it.
 *
 * SIGINT, SIGTERM and SIGHUP end the children, remove the temporary files
 * and folders, and then end the process as they would have. SIGKILL cannot
 * be caught: children of ours notice that they lost their parent and end as
 * by SIGTERM. */
#ifndef ASSAY_BASE_CLEANUP_H
#define ASSAY_BASE_CLEANUP_H

#include <sys/types.h>

/* Called first in main: programs that do not are ended at once. */
void cleanup_start(void);
/* Called first in a forked child: what its parent cleans up is none of its
 * business. */
void cleanup_restart(void);

/* A file, or a folder with all that is in it, to be removed. */
void cleanup_add_path(const char *path);
/* The same with a file descriptor that is closed when it is forgotten. */
void cleanup_add_locked(const char *path, int fd);
void cleanup_forget_path(const char *path);
/* A child to be sent the signal, too, and waited for. */
void cleanup_add_child(pid_t pid);
void cleanup_forget_child(pid_t pid);

#endif
