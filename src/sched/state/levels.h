/* SPDX-License-Identifier: MIT */
/*
 * The numbers of scheduling priorities: what clients set (priority.c), and the one order of levels
 * into which level.c maps it (SCH-01, SCH-02, SCH-04).
 */
#ifndef VMM_SCHED_LEVELS_H
#define VMM_SCHED_LEVELS_H

#define VMM_PRIORITY_ABSOLUTE       0x40000000
#define VMM_PRIORITY_ABSOLUTE_MASK  0x1F
#define VMM_PRIORITY_CLASSES        6u /* D3DKMT_SCHEDULINGPRIORITYCLASS_IDLE to _REALTIME */
#define VMM_PRIORITY_RELATIVE_LEAST (-7)
#define VMM_PRIORITY_RELATIVE_MOST  7
#define VMM_PRIORITY_RELATIVES      14u /* relative priorities without -7, which is idle */
#define VMM_PRIORITY_SOFT_LEAST     16
#define VMM_PRIORITY_HARD           30

#define VMM_LEVEL_RELATIVE  VMM_PRIORITY_CLASSES
#define VMM_LEVEL_REAL_TIME (VMM_LEVEL_RELATIVE + VMM_PRIORITY_CLASSES * VMM_PRIORITY_RELATIVES)

#endif
