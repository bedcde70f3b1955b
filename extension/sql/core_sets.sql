
-- core_sets.sql
--   Sets of protected values: PostgreSQL's functions under other names, which the proxy writes. The server
--   counts the rows; each end of a set is a question to the keeper.
--   Invariant: no constant but small integers, which are variables since constants are not taken.

CREATE FUNCTION pg_catalog.enc_generate_series(start enc_int4, stop enc_int4, step enc_int4)
	RETURNS SETOF enc_int4 LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog AS $body$
DECLARE
	zero enc_int4 := step - step;
	up bool := step > zero;
	x enc_int8 := start;
	last enc_int8 := stop;
BEGIN
	IF step = zero THEN
		RAISE EXCEPTION 'step size cannot equal zero' USING ERRCODE = '22023';
	END IF;
	WHILE CASE WHEN up THEN x <= last ELSE x >= last END LOOP
		RETURN NEXT x::enc_int4;
		x := x + step;
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_generate_series(start enc_int8, stop enc_int8, step enc_int8)
	RETURNS SETOF enc_int8 LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog AS $body$
DECLARE
	zero enc_int8 := step - step;
	up bool := step > zero;
	x enc_numeric := start;
	last enc_numeric := stop;
BEGIN
	IF step = zero THEN
		RAISE EXCEPTION 'step size cannot equal zero' USING ERRCODE = '22023';
	END IF;
	WHILE CASE WHEN up THEN x <= last ELSE x >= last END LOOP
		RETURN NEXT x::enc_int8;
		x := x + step;
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_generate_series(start enc_numeric, stop enc_numeric, step enc_numeric)
	RETURNS SETOF enc_numeric LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog AS $body$
DECLARE
	nought int4 := 0;
	zero enc_numeric := nought::enc_int4;
	ends enc_numeric[] := ARRAY[start, stop, step];
	names text[] := ARRAY['start', 'stop', 'step size'];
	up bool := step > zero;
	x enc_numeric := start;
BEGIN
	FOR i IN 1..3 LOOP
		-- Neither NaN nor infinity is left by itself.
		IF ends[i] - ends[i] <> zero THEN
			RAISE EXCEPTION '%', format(CASE WHEN ends[i] = ends[i] - ends[i] THEN '%s%s cannot be NaN' ELSE '%s%s cannot be infinity' END,
				names[i], CASE WHEN i < 3 THEN ' value' END) USING ERRCODE = '22023';
		END IF;
	END LOOP;
	IF step = zero THEN
		RAISE EXCEPTION 'step size cannot equal zero' USING ERRCODE = '22023';
	END IF;
	WHILE CASE WHEN up THEN x <= stop ELSE x >= stop END LOOP
		RETURN NEXT x;
		x := x + step;
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_generate_series(start enc_timestamp, stop enc_timestamp, step enc_interval)
	RETURNS SETOF enc_timestamp LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog AS $body$
DECLARE
	zero enc_interval := step - step;
	up bool := step > zero;
	x enc_timestamp := start;
	last enc_timestamp := stop;
BEGIN
	IF step = zero THEN
		RAISE EXCEPTION 'step size cannot equal zero' USING ERRCODE = '22023';
	END IF;
	WHILE CASE WHEN up THEN x <= last ELSE x >= last END LOOP
		RETURN NEXT x;
		x := x + step;
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_generate_series(start enc_timestamptz, stop enc_timestamptz, step enc_interval)
	RETURNS SETOF enc_timestamptz LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog AS $body$
DECLARE
	zero enc_interval := step - step;
	up bool := step > zero;
	x enc_timestamptz := start;
	last enc_timestamptz := stop;
BEGIN
	IF step = zero THEN
		RAISE EXCEPTION 'step size cannot equal zero' USING ERRCODE = '22023';
	END IF;
	WHILE CASE WHEN up THEN x <= last ELSE x >= last END LOOP
		RETURN NEXT x;
		x := x + step;
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_generate_series(start enc_int4, stop enc_int4)
	RETURNS SETOF enc_int4 LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog AS $body$
DECLARE
	one int4 := 1;
	step enc_int4 := one::enc_int4;
BEGIN
	RETURN QUERY SELECT * FROM enc_generate_series(start, stop, step);
END
$body$;

CREATE FUNCTION pg_catalog.enc_generate_series(start enc_int8, stop enc_int8)
	RETURNS SETOF enc_int8 LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog AS $body$
DECLARE
	one int4 := 1;
	step enc_int8 := one::enc_int8;
BEGIN
	RETURN QUERY SELECT * FROM enc_generate_series(start, stop, step);
END
$body$;

CREATE FUNCTION pg_catalog.enc_generate_series(start enc_numeric, stop enc_numeric)
	RETURNS SETOF enc_numeric LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog AS $body$
DECLARE
	one int4 := 1;
	step enc_numeric := one::enc_int4;
BEGIN
	RETURN QUERY SELECT * FROM enc_generate_series(start, stop, step);
END
$body$;

CREATE FUNCTION pg_catalog.enc_json_array_elements(doc enc_json, OUT value enc_json)
	RETURNS SETOF enc_json LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog AS $body$
DECLARE
	place int4 := 0;
	size enc_int4 := enc_jsonarraylength(doc);
BEGIN
	WHILE place::enc_int4 < size LOOP
		value := enc_jsonelement(doc, place::enc_int4);
		RETURN NEXT;
		place := place + 1;
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_json_array_elements_text(doc enc_json, OUT value enc_text)
	RETURNS SETOF enc_text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog AS $body$
DECLARE
	place int4 := 0;
	size enc_int4 := enc_jsonarraylength(doc);
BEGIN
	WHILE place::enc_int4 < size LOOP
		value := enc_jsonelementtext(doc, place::enc_int4);
		RETURN NEXT;
		place := place + 1;
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_jsonb_array_elements(doc enc_jsonb, OUT value enc_jsonb)
	RETURNS SETOF enc_jsonb LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog AS $body$
DECLARE
	place int4 := 0;
	size enc_int4 := enc_jsonarraylength(doc);
BEGIN
	WHILE place::enc_int4 < size LOOP
		value := enc_jsonelement(doc, place::enc_int4);
		RETURN NEXT;
		place := place + 1;
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_jsonb_array_elements_text(doc enc_jsonb, OUT value enc_text)
	RETURNS SETOF enc_text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog AS $body$
DECLARE
	place int4 := 0;
	size enc_int4 := enc_jsonarraylength(doc);
BEGIN
	WHILE place::enc_int4 < size LOOP
		value := enc_jsonelementtext(doc, place::enc_int4);
		RETURN NEXT;
		place := place + 1;
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_string_to_table(whole enc_text, delimiter enc_text, missing enc_text DEFAULT NULL)
	RETURNS SETOF enc_text LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED SET search_path = pg_catalog AS $body$
DECLARE
	one int4 := 1;
	zero enc_int4 := enc_length(whole) - enc_length(whole);
	wide enc_int4 := enc_length(delimiter);
	rest enc_text := whole;
	part enc_text;
	place enc_int4;
	more bool := enc_length(whole) > zero;
BEGIN
	WHILE more LOOP
		IF delimiter IS NULL THEN
			part := enc_left(rest, one::enc_int4);
			rest := enc_substring(rest, one::enc_int4 + one::enc_int4);
			more := enc_length(rest) > zero;
		ELSIF wide = zero THEN
			part := rest;
			more := false;
		ELSE
			place := enc_position(rest, delimiter);
			part := enc_splitpart(rest, delimiter, one::enc_int4);
			more := place > zero;
			rest := enc_substring(rest, place + wide);
		END IF;
		IF part = missing THEN
			part := NULL;
		END IF;
		RETURN NEXT part;
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_json_object_keys(doc enc_json)
	RETURNS SETOF enc_text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED ROWS 100 SET search_path = pg_catalog AS $body$
DECLARE
	place int4 := 0;
	key enc_text := enc_jsonkey(doc, place::enc_int4);
BEGIN
	WHILE key IS NOT NULL LOOP
		RETURN NEXT key;
		place := place + 1;
		key := enc_jsonkey(doc, place::enc_int4);
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_json_each(doc enc_json, OUT key enc_text, OUT value enc_json)
	RETURNS SETOF record LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED ROWS 100 SET search_path = pg_catalog AS $body$
DECLARE
	place int4 := 0;
BEGIN
	key := enc_jsonkey(doc, place::enc_int4);
	WHILE key IS NOT NULL LOOP
		value := enc_jsonpair(doc, place::enc_int4);
		RETURN NEXT;
		place := place + 1;
		key := enc_jsonkey(doc, place::enc_int4);
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_json_each_text(doc enc_json, OUT key enc_text, OUT value enc_text)
	RETURNS SETOF record LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED ROWS 100 SET search_path = pg_catalog AS $body$
DECLARE
	place int4 := 0;
BEGIN
	key := enc_jsonkey(doc, place::enc_int4);
	WHILE key IS NOT NULL LOOP
		value := enc_jsonpairtext(doc, place::enc_int4);
		RETURN NEXT;
		place := place + 1;
		key := enc_jsonkey(doc, place::enc_int4);
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_jsonb_object_keys(doc enc_jsonb)
	RETURNS SETOF enc_text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED ROWS 100 SET search_path = pg_catalog AS $body$
DECLARE
	place int4 := 0;
	key enc_text := enc_jsonkey(doc, place::enc_int4);
BEGIN
	WHILE key IS NOT NULL LOOP
		RETURN NEXT key;
		place := place + 1;
		key := enc_jsonkey(doc, place::enc_int4);
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_jsonb_each(doc enc_jsonb, OUT key enc_text, OUT value enc_jsonb)
	RETURNS SETOF record LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED ROWS 100 SET search_path = pg_catalog AS $body$
DECLARE
	place int4 := 0;
BEGIN
	key := enc_jsonkey(doc, place::enc_int4);
	WHILE key IS NOT NULL LOOP
		value := enc_jsonpair(doc, place::enc_int4);
		RETURN NEXT;
		place := place + 1;
		key := enc_jsonkey(doc, place::enc_int4);
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_jsonb_each_text(doc enc_jsonb, OUT key enc_text, OUT value enc_text)
	RETURNS SETOF record LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED ROWS 100 SET search_path = pg_catalog AS $body$
DECLARE
	place int4 := 0;
BEGIN
	key := enc_jsonkey(doc, place::enc_int4);
	WHILE key IS NOT NULL LOOP
		value := enc_jsonpairtext(doc, place::enc_int4);
		RETURN NEXT;
		place := place + 1;
		key := enc_jsonkey(doc, place::enc_int4);
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_regexp_split_to_table(whole enc_text, pattern enc_text)
	RETURNS SETOF enc_text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog AS $body$
DECLARE
	place int4 := 0;
	part enc_text := enc_regexppart(whole, pattern, place::enc_int4);
BEGIN
	WHILE part IS NOT NULL LOOP
		RETURN NEXT part;
		place := place + 1;
		part := enc_regexppart(whole, pattern, place::enc_int4);
	END LOOP;
END
$body$;

CREATE FUNCTION pg_catalog.enc_regexp_split_to_table(whole enc_text, pattern enc_text, flags enc_text)
	RETURNS SETOF enc_text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog AS $body$
DECLARE
	place int4 := 0;
	part enc_text := enc_regexppart(whole, pattern, flags, place::enc_int4);
BEGIN
	WHILE part IS NOT NULL LOOP
		RETURN NEXT part;
		place := place + 1;
		part := enc_regexppart(whole, pattern, flags, place::enc_int4);
	END LOOP;
END
$body$;
