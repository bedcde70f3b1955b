/*
 * mode.h
 *	  The server's mode, which decides whether superusers may log in
 *	  (docs/maintenance.md).
 */
#ifndef CFD_SESSION_MODE_H
#define CFD_SESSION_MODE_H

extern void cfd_mode_init(void);

#endif
