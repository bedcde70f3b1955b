-- What the forms are about, in the family soft_.
CREATE TABLE p (id int PRIMARY KEY, name soft_text(eq, ord_32, key_901), n soft_int8(eq, ord, add, mul, key_902),
    d soft_date(key_903), vc soft_text(eq, ord_32, key_901), note text);
CREATE TABLE q (id int, name soft_text(eq, ord_32, key_901) UNIQUE,
    n soft_int8(eq, ord, add, mul, key_902) CHECK (n > 5));
CREATE TABLE r (name soft_text(eq, ord_32, key_901) NOT NULL REFERENCES q (name));
CREATE FUNCTION same(a enc_text) RETURNS enc_text LANGUAGE sql RETURN a;
CREATE FUNCTION either(a enc_text, b enc_text DEFAULT 'none') RETURNS enc_text LANGUAGE sql
    RETURN coalesce(a, b);
CREATE PROCEDURE add(a enc_text, b enc_int8) LANGUAGE sql AS 'SELECT a, b';
CREATE FUNCTION complain() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'not %', NEW.id; END $$;
CREATE TABLE bad (id int, name soft_text(eq, ord_32, key_901));
CREATE TRIGGER complain BEFORE INSERT ON bad FOR EACH ROW EXECUTE FUNCTION complain();
CREATE TABLE doc (id int, j enc_json, b enc_jsonb);
INSERT INTO doc VALUES (1, '{"a": [1]}', '{"a": [1]}');
INSERT INTO p VALUES (1, 'Ann', 7, '2000-01-01', 'x', 'z');
INSERT INTO q VALUES (1, 'Ann', 7);
CREATE TABLE arr (id int, a enc_text[], m enc_int8[]);
INSERT INTO arr VALUES (1, '{x,y}', '{7,NULL}');
