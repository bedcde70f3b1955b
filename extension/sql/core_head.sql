-- core_head.sql
--   What the generated definitions need: the type of transition states, and estimators.
--   It defines no protected type itself.
--   Invariant: a state can neither be written nor read in SQL.
-- The Makefile puts this file, generated.sql and core_tail.sql together.

\echo Use "CREATE EXTENSION confide" to load this file. \quit

CREATE TYPE pg_catalog.enc_aggstate;
CREATE FUNCTION pg_catalog.enc_aggstate_in(cstring) RETURNS pg_catalog.enc_aggstate
	AS 'MODULE_PATHNAME', 'cfd_aggstate_in' LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION pg_catalog.enc_aggstate_out(pg_catalog.enc_aggstate) RETURNS cstring
	AS 'MODULE_PATHNAME', 'cfd_aggstate_out' LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
CREATE TYPE pg_catalog.enc_aggstate (INPUT = pg_catalog.enc_aggstate_in,
	OUTPUT = pg_catalog.enc_aggstate_out, INTERNALLENGTH = 8, PASSEDBYVALUE,
	ALIGNMENT = double, STORAGE = plain, CATEGORY = 'P');
COMMENT ON TYPE pg_catalog.enc_aggstate IS 'internal: state of an aggregate over protected values';
CREATE FUNCTION pg_catalog.enc_aggregate_combine(pg_catalog.enc_aggstate, pg_catalog.enc_aggstate)
	RETURNS pg_catalog.enc_aggstate
	AS 'MODULE_PATHNAME', 'cfd_aggregate_combine' LANGUAGE C STABLE PARALLEL SAFE COST 4;
CREATE FUNCTION pg_catalog.enc_eqsel(internal, oid, internal, integer) RETURNS float8
	AS 'MODULE_PATHNAME', 'cfd_eqsel' LANGUAGE C STRICT STABLE PARALLEL SAFE;
CREATE FUNCTION pg_catalog.enc_neqsel(internal, oid, internal, integer) RETURNS float8
	AS 'MODULE_PATHNAME', 'cfd_neqsel' LANGUAGE C STRICT STABLE PARALLEL SAFE;
CREATE FUNCTION pg_catalog.enc_scalarltsel(internal, oid, internal, integer) RETURNS float8
	AS 'MODULE_PATHNAME', 'cfd_scalarltsel' LANGUAGE C STRICT STABLE PARALLEL SAFE;
CREATE FUNCTION pg_catalog.enc_scalarlesel(internal, oid, internal, integer) RETURNS float8
	AS 'MODULE_PATHNAME', 'cfd_scalarlesel' LANGUAGE C STRICT STABLE PARALLEL SAFE;
CREATE FUNCTION pg_catalog.enc_scalargtsel(internal, oid, internal, integer) RETURNS float8
	AS 'MODULE_PATHNAME', 'cfd_scalargtsel' LANGUAGE C STRICT STABLE PARALLEL SAFE;
CREATE FUNCTION pg_catalog.enc_scalargesel(internal, oid, internal, integer) RETURNS float8
	AS 'MODULE_PATHNAME', 'cfd_scalargesel' LANGUAGE C STRICT STABLE PARALLEL SAFE;
CREATE FUNCTION pg_catalog.enc_matchingsel(internal, oid, internal, integer) RETURNS float8
	AS 'MODULE_PATHNAME', 'cfd_matchingsel' LANGUAGE C STRICT STABLE PARALLEL SAFE;
