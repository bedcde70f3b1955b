/*
 * elements.h
 *	  B-tree scans with array conditions, one element after the other.
 *
 * PostgreSQL sorts the elements by comparing them pair by pair, and from 17 on
 * it looks up all of them in one scan, in which it compares them with the keys
 * that it meets. Here the elements are ranked in one round trip. Each of them
 * is then a scan by equality, which is searched for before it begins
 * (index/search.h). So keys are compared with as few elements in each version.
 *
 * Not for parallel scans, nor for arrays of other conditions than equality: for
 * these PostgreSQL's own way stays.
 *
 * Invariant: the rows are those of PostgreSQL's own scan, in its order.
 */
#ifndef CFD_INDEX_ELEMENTS_H
#define CFD_INDEX_ELEMENTS_H

#include "postgres.h"
#include "access/genam.h"
#include "access/relscan.h"
#include "access/sdir.h"

/* The array of one condition: its elements in the index's order, without duplicates. */
typedef struct CfdArray
{
	int			key;			/* which of the scan's keys it is */
	Datum	   *elements;
	int			count;
	int			at;				/* the present element, */
	int			marked;			/* and that of the mark */
} CfdArray;

typedef struct CfdElements
{
	MemoryContext context;
	MemoryContextCallback at_end;
	IndexScanDesc scan;
	CfdArray   *arrays;			/* the last one moves fastest */
	int			count;
	struct CfdElements *next;
} CfdElements;

/* The elements of a scan, or NULL. */
extern CfdElements *cfd_elements_of(IndexScanDesc scan);
/* The first array, if the scan has no other condition; otherwise NULL. */
extern const CfdArray *cfd_elements_only(IndexScanDesc scan);
/* "all": the scan will be read to its end. */
extern bool cfd_elements_next(CfdElements *elements, ScanDirection direction, bool all);

/* In place of the access method's own routines. */
extern void cfd_elements_rescan(IndexScanDesc scan, ScanKey keys, int count, ScanKey orders, int order_count);
extern void cfd_elements_mark(IndexScanDesc scan);
extern void cfd_elements_restore(IndexScanDesc scan);
extern void cfd_elements_end(IndexScanDesc scan);

#endif
