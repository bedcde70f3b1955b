/*
 * twins.h
 *	  The twin of a qual on encodings (family soft_): the same comparison of
 *	  the values, which the keeper can evaluate because it opens the cells.
 *
 * Invariant: a twin has the result of its original, NULLs included; an
 * original that fails has a result, or fails.
 */
#ifndef CFD_PLAN_TWINS_H
#define CFD_PLAN_TWINS_H

#include "postgres.h"
#include "nodes/primnodes.h"
#include "switch/switch.h"

/*
 * Returns NULL if there is none. Adds what the qual takes to *work, which is
 * undefined then.
 */
extern Node *cfd_soft_twin(Node *qual, CfdWork *work);

#endif
