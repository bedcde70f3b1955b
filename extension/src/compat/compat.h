/*
 * compat.h
 *	  Differences between PostgreSQL's major versions.
 *
 * Only this file tests PG_VERSION_NUM. It defines names that the rest of the extension uses in
 * place of what changed, and has no logic.
 *
 * Invariant: no source file outside this folder has conditions on the version.
 */
#ifndef CFD_COMPAT_COMPAT_H
#define CFD_COMPAT_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000
#error "Confide needs PostgreSQL 15 or later"
#endif

/* Macros of values of variable length. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* A function that does not return, before its declaration. */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

/* Number of a backend's PGPROC, an index below CFD_PROC_COUNT. */
#if PG_VERSION_NUM >= 170000
#define CFD_PROC_NUMBER(proc) ((int) GetNumberFromPGProc(proc))
#define CFD_PROC_COUNT (MaxBackends + NUM_AUXILIARY_PROCS + max_prepared_xacts)
#else
#define CFD_PROC_NUMBER(proc) ((proc)->pgprocno)
#define CFD_PROC_COUNT (MaxBackends + NUM_AUXILIARY_PROCS + max_prepared_xacts)
#endif

/* First number of a virtual transaction, as pg_locks shows it. */
#if PG_VERSION_NUM >= 170000
#define CFD_VIRTUAL_PROC(virtual) ((virtual).procNumber)
#else
#define CFD_VIRTUAL_PROC(virtual) ((virtual).backendId)
#endif

/* Number of this process among the backends, from 1; needs storage/proc.h. */
#if PG_VERSION_NUM >= 170000
#define CFD_BACKEND_NUMBER (MyProcNumber + 1)
#else
#define CFD_BACKEND_NUMBER MyBackendId
#endif

/* Whether this process is a worker of autovacuum; needs miscadmin.h or postmaster/autovacuum.h. */
#if PG_VERSION_NUM >= 170000
#define CFD_IS_AUTOVACUUM() AmAutoVacuumWorkerProcess()
#else
#define CFD_IS_AUTOVACUUM() IsAutoVacuumWorkerProcess()
#endif

/* Statistics target of a column that is analyzed; needs commands/vacuum.h. */
#if PG_VERSION_NUM >= 170000
#define CFD_STATISTICS_TARGET(stats) ((stats)->attstattarget)
#else
#define CFD_STATISTICS_TARGET(stats) ((stats)->attr->attstattarget)
#endif

/* What tuple_update reports about indexes. */
#if PG_VERSION_NUM >= 160000
#define CfdUpdateIndexes TU_UpdateIndexes
#else
#define CfdUpdateIndexes bool
#endif

/* Whether it reports that a row has new entries, and how they are made; needs executor/executor.h. */
#if PG_VERSION_NUM >= 160000
#define CFD_INDEXES_CHANGED(update) ((update) != TU_None)
#define CFD_INSERT_INDEX_TUPLES(result, slot, estate) \
	ExecInsertIndexTuples(result, slot, estate, false, false, NULL, NIL, false)
#else
#define CFD_INDEXES_CHANGED(update) (update)
#define CFD_INSERT_INDEX_TUPLES(result, slot, estate) \
	ExecInsertIndexTuples(result, slot, estate, false, false, NULL, NIL)
#endif

/*
 * What a query may do with a table: in its entry of the range table, or apart.
 * Needs parser/parse_relation.h.
 */
#if PG_VERSION_NUM >= 160000
#define CfdPermissions RTEPermissionInfo
#define CFD_PERMISSIONS(query, entry) getRTEPermissionInfo((query)->rteperminfos, entry)
#else
#define CfdPermissions RangeTblEntry
#define CFD_PERMISSIONS(query, entry) (entry)
#endif

/* Whether a role owns a relation; needs utils/acl.h and catalog/pg_class.h. */
#if PG_VERSION_NUM >= 160000
#define CFD_OWNS(relation, role) object_ownercheck(RelationRelationId, relation, role)
#else
#define CFD_OWNS(relation, role) pg_class_ownercheck(relation, role)
#endif

/* Arguments of ExecutorRun after the query descriptor. */
#if PG_VERSION_NUM >= 180000
#define CFD_RUN_PARAMETERS ScanDirection direction, uint64 count
#define CFD_RUN_ARGUMENTS direction, count
#else
#define CFD_RUN_PARAMETERS ScanDirection direction, uint64 count, bool execute_once
#define CFD_RUN_ARGUMENTS direction, count, execute_once
#endif

/* All settings, and their number; needs utils/guc_tables.h. */
#if PG_VERSION_NUM >= 160000
#define CFD_SETTINGS(count) get_guc_variables(&(count))
#else
#define CFD_SETTINGS(count) ((count) = GetNumConfigOptions(), get_guc_variables())
#endif

/* Root page of a B-tree, locked for reading; needs access/nbtree.h. */
#if PG_VERSION_NUM >= 160000
#define CFD_BT_ROOT(index) _bt_getroot(index, NULL, BT_READ)
#else
#define CFD_BT_ROOT(index) _bt_getroot(index, BT_READ)
#endif

/* First page of a level of a B-tree; needs access/nbtree.h. */
#if PG_VERSION_NUM >= 170000
#define CFD_BT_ENDPOINT(index, level, snapshot) ((void) (snapshot), _bt_get_endpoint(index, level, false))
#else
#define CFD_BT_ENDPOINT(index, level, snapshot) _bt_get_endpoint(index, level, false, snapshot)
#endif

/*
 * Whether the planner relies on the order of a B-tree's rows also where an array
 * condition comes after columns that are not bound to one value.
 */
#define CFD_BT_ARRAYS_IN_ORDER (PG_VERSION_NUM >= 170000)

/*
 * The meanings of a comparison operator, and what one is; needs access/stratnum.h and
 * utils/lsyscache.h. Those of <, <=, =, >= and > are the strategies of B-trees.
 */
#if PG_VERSION_NUM >= 180000
#define CfdMeaning CompareType
#define CFD_MEANINGS(operator) get_op_index_interpretation(operator)
#define CFD_MEANING(meaning) ((int) ((OpIndexInterpretation *) (meaning))->cmptype)
#define CFD_MEANING_NE COMPARE_NE
#else
#define CfdMeaning int16
#define CFD_MEANINGS(operator) get_op_btree_interpretation(operator)
#define CFD_MEANING(meaning) (((OpBtreeInterpretation *) (meaning))->strategy)
#define CFD_MEANING_NE ROWCOMPARE_NE
#endif

/*
 * Columns that INTERSECT and EXCEPT compare, their operators and collations; from 18 on there are
 * two inputs. Needs nodes/plannodes.h.
 */
#if PG_VERSION_NUM >= 180000
#define CFD_SET_COLUMNS(set) (set)->cmpColIdx, (set)->cmpOperators, (set)->cmpCollations
#else
#define CFD_SET_COLUMNS(set) (set)->dupColIdx, (set)->dupOperators, (set)->dupCollations
#endif

/* A table of the query that is not its target; needs executor/executor.h. */
#if PG_VERSION_NUM >= 180000
#define CFD_TABLE_OF(estate, entry) ExecGetRangeTableRelation(estate, entry, false)
#else
#define CFD_TABLE_OF(estate, entry) ExecGetRangeTableRelation(estate, entry)
#endif

/* Names and variables of a FROM item's columns; needs parser/parse_relation.h. */
#if PG_VERSION_NUM >= 180000
#define CFD_EXPAND_ENTRY(entry, names, vars) \
	expandRTE(entry, 1, 0, VAR_RETURNING_DEFAULT, -1, false, names, vars)
#else
#define CFD_EXPAND_ENTRY(entry, names, vars) expandRTE(entry, 1, 0, -1, false, names, vars)
#endif

/* Sleeps according to the settings of VACUUM; needs commands/vacuum.h. */
#if PG_VERSION_NUM >= 180000
#define CFD_DELAY_POINT(analyze) vacuum_delay_point(analyze)
#else
#define CFD_DELAY_POINT(analyze) vacuum_delay_point()
#endif

/*
 * A path, or a plan, has as many disabled ones in it as the one that it is made from; before 18 its
 * costs say so.
 */
#if PG_VERSION_NUM >= 180000
#define CFD_DISABLED_AS(path, from) ((path)->disabled_nodes = (from)->disabled_nodes)
#else
#define CFD_DISABLED_AS(path, from) ((void) 0)
#endif

/* The setting's name in hints. */
#if PG_VERSION_NUM >= 180000
#define CFD_DATESTYLE "DateStyle"
#else
#define CFD_DATESTYLE "datestyle"
#endif

/* Creates a wait event set without an owner. */
#if PG_VERSION_NUM >= 170000
#define CFD_CREATE_WAIT_SET(n) CreateWaitEventSet(NULL, n)
#else
#define CFD_CREATE_WAIT_SET(n) CreateWaitEventSet(TopMemoryContext, n)
#endif

/* Whether extensions can define wait events. */
#if PG_VERSION_NUM >= 170000
#define CFD_NAMED_WAIT_EVENTS
#endif

/* The search path in effect; needs catalog/namespace.h. */
#if PG_VERSION_NUM >= 170000
#define CfdSearchPath SearchPathMatcher
#define CFD_SEARCH_PATH(context) GetSearchPathMatcher(context)
#else
#define CfdSearchPath OverrideSearchPath
#define CFD_SEARCH_PATH(context) GetOverrideSearchPath(context)
#endif

/* Number of live rows in a table, according to the statistics system. */
#if PG_VERSION_NUM >= 160000
#define CFD_LIVE_TUPLES(entry) ((entry)->live_tuples)
#else
#define CFD_LIVE_TUPLES(entry) ((entry)->n_live_tuples)
#endif

/* Columns whose change requires new index entries; needs utils/relcache.h. */
#if PG_VERSION_NUM >= 160000
#define CFD_INDEX_ATTR_HOT INDEX_ATTR_BITMAP_HOT_BLOCKING
#else
#define CFD_INDEX_ATTR_HOT INDEX_ATTR_BITMAP_ALL
#endif

#endif
