/* Walking over the regions of a program; see program.h. */
#include "program/program.h"

int program_next_region(const Program *p, int parent, bool in_otherwise,
                        int first, int end, int after)
{
    for (int i = after + 1; i < p->regions.count; i++) {
        const ProgramRegion *r = &p->regions.data[i];
        if (r->parent == parent && r->in_otherwise == in_otherwise &&
            r->first >= first && r->end <= end)
            return i;
    }
    return -1;
}

int program_cut(const Program *p, int first, int count)
{
    int end = first + count < p->steps.count ? first + count : p->steps.count;

    for (int i = 0; i < p->regions.count; i++) {
        const ProgramRegion *r = &p->regions.data[i];
        if (r->parent < 0 && r->first < end && r->end > end)
            end = r->end;
    }
    return end;
}
