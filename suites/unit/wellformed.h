/* Whether a page is well-formed XML, and so safe from what names hold. */
#ifndef ASSAY_SUITES_UNIT_WELLFORMED_H
#define ASSAY_SUITES_UNIT_WELLFORMED_H

#include <stdbool.h>
#include <stddef.h>

/* Elements nest and are closed, attributes are quoted and differ, references
 * are known, characters are valid UTF-8 that XML allows. Otherwise writes
 * what is wrong, with the text around it. */
bool wellformed(const char *text, char *fault, size_t size);

#endif
