-- The parameter is a document with the values in it.
INSERT INTO p (id, name) SELECT * FROM json_to_recordset(%s::json) AS x(a int, b text)
INSERT INTO p (id, name) SELECT * FROM jsonb_to_recordset(%s) AS x(a int, b enc_text)
INSERT INTO p (name) SELECT e ->> 'b' FROM jsonb_array_elements(%s) AS e
INSERT INTO p SELECT * FROM json_populate_recordset(NULL::p, %s)
