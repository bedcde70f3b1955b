-- What the forms are about.
CREATE TABLE p (id int PRIMARY KEY, name enc_text, n enc_int8, d enc_date, vc enc_varchar(40), note text);
CREATE TABLE q (id int, name enc_text UNIQUE, n enc_int8 CHECK (n > 5));
CREATE TABLE r (name enc_text NOT NULL REFERENCES q (name));
CREATE FUNCTION same(a enc_text) RETURNS enc_text LANGUAGE sql RETURN a;
CREATE FUNCTION either(a enc_text, b enc_text DEFAULT 'none') RETURNS enc_text LANGUAGE sql
    RETURN coalesce(a, b);
CREATE PROCEDURE add(a enc_text, b enc_int8) LANGUAGE sql
    AS 'INSERT INTO q (name, n) VALUES (a, b)';
CREATE FUNCTION complain() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'not %', NEW.id; END $$;
CREATE TABLE bad (id int, name enc_text);
CREATE TRIGGER complain BEFORE INSERT ON bad FOR EACH ROW EXECUTE FUNCTION complain();
CREATE TABLE doc (id int, j enc_json, b enc_jsonb);
INSERT INTO doc VALUES (1, '{"a": [1]}', '{"a": [1]}');
INSERT INTO p VALUES (1, 'Ann', 7, '2000-01-01', 'x', 'z');
INSERT INTO q VALUES (1, 'Ann', 7);
CREATE TABLE arr (id int, a enc_text[], m enc_int8[]);
INSERT INTO arr VALUES (1, '{x,y}', '{7,NULL}');
