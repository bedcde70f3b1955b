-- What somebody types who moves the database of schema.sql by docs/migrating.md, in the order of its
-- sections, through the proxy.

-- What stands on the columns goes first: views, checks, defaults, generated columns, partial indexes.
DROP VIEW patient_list, debtors, staff_directory, abnormal;
DROP MATERIALIZED VIEW revenue;
ALTER TABLE staff DROP CONSTRAINT staff_salary_check;
ALTER TABLE patient DROP COLUMN full_name, DROP CONSTRAINT patient_born_check, ALTER phone DROP DEFAULT;
ALTER TABLE invoice ALTER total DROP DEFAULT;
ALTER TABLE invoice_line DROP COLUMN amount, DROP CONSTRAINT invoice_line_quantity_check;
DROP INDEX patient_by_born;

-- The columns.
ALTER TABLE staff ALTER full_name TYPE enc_text, ALTER email TYPE enc_varchar(80),
    ALTER salary TYPE enc_numeric(10, 2);
ALTER TABLE patient ALTER ssn TYPE enc_varchar(11), ALTER first_name TYPE enc_text,
    ALTER last_name TYPE enc_text, ALTER born TYPE enc_date, ALTER email TYPE enc_text,
    ALTER phone TYPE enc_varchar(30), ALTER notes TYPE enc_text;
ALTER TABLE address ALTER street TYPE enc_text, ALTER city TYPE enc_text, ALTER zip TYPE enc_varchar(10);
ALTER TABLE policy ALTER number TYPE enc_varchar(20);
ALTER TABLE appointment ALTER reason TYPE enc_text;
ALTER TABLE visit ALTER weight TYPE enc_numeric(5, 1), ALTER pulse TYPE enc_int4, ALTER findings TYPE enc_text;
ALTER TABLE diagnosis ALTER note TYPE enc_text;
ALTER TABLE prescription ALTER dose TYPE enc_numeric, ALTER instructions TYPE enc_text;
ALTER TABLE lab_test ALTER low TYPE enc_float8, ALTER high TYPE enc_float8;
ALTER TABLE lab_result ALTER value TYPE enc_float8;
ALTER TABLE invoice ALTER total TYPE enc_numeric(12, 2);
-- The quantity, too: a generated column is of protected columns only, or of plain ones.
ALTER TABLE invoice_line ALTER description TYPE enc_text, ALTER quantity TYPE enc_int4, ALTER unit_price TYPE enc_numeric(10, 2);
ALTER TABLE payment ALTER amount TYPE enc_numeric(12, 2), ALTER iban TYPE enc_varchar(34);
ALTER TABLE audit ALTER old_value TYPE enc_text, ALTER new_value TYPE enc_text;

-- What stood on them, again.
ALTER TABLE staff ADD CONSTRAINT staff_salary_check CHECK (salary > 0);
ALTER TABLE patient ADD CONSTRAINT patient_born_check CHECK (born > '1900-01-01'),
    ALTER phone SET DEFAULT 'unknown',
    ADD full_name enc_text GENERATED ALWAYS AS (first_name || ' ' || last_name) STORED;
ALTER TABLE invoice ALTER total SET DEFAULT 0;
ALTER TABLE invoice_line ADD CONSTRAINT invoice_line_quantity_check CHECK (quantity > 0),
    ADD amount enc_numeric(12, 2) GENERATED ALWAYS AS (quantity * unit_price) STORED;
CREATE INDEX patient_by_born ON patient (born) WHERE email IS NOT NULL;

-- Routines with arguments and results of protected types.
DROP FUNCTION age_of, balance, patients_called;
DROP PROCEDURE raise_salaries;
CREATE FUNCTION age_of(born patient.born%TYPE, day enc_date) RETURNS enc_int4 LANGUAGE sql STABLE
    RETURN extract(year FROM age(day, born))::int;
CREATE FUNCTION balance(which int) RETURNS enc_numeric LANGUAGE sql STABLE BEGIN ATOMIC
    SELECT i.total - coalesce((SELECT sum(p.amount) FROM payment p WHERE p.invoice_id = i.id), 0)
    FROM invoice i WHERE i.id = which;
END;
CREATE FUNCTION patients_called(part enc_text) RETURNS SETOF bigint LANGUAGE sql STABLE BEGIN ATOMIC
    SELECT id FROM patient WHERE last_name ILIKE '%' || part || '%' ORDER BY id;
END;
CREATE PROCEDURE raise_salaries(by_percent enc_numeric, in_department int) LANGUAGE sql BEGIN ATOMIC
    UPDATE staff SET salary = round(salary * (1 + by_percent / 100), 2)
    WHERE department_id = in_department AND active;
END;
-- The others as they are.
SELECT pg_get_functiondef(oid) FROM pg_proc
WHERE proname IN ('touch', 'log_patient', 'no_overlap', 'sum_up', 'settle', 'flag_result') \gexec

-- The views.
CREATE VIEW patient_list AS
    SELECT p.id, p.full_name, p.born, a.city, p.email IS NOT NULL AS reachable
    FROM patient p LEFT JOIN address a ON a.patient_id = p.id;
CREATE VIEW debtors AS
    SELECT p.id, p.full_name, sum(balance(i.id)) AS owes
    FROM patient p JOIN invoice i ON i.patient_id = p.id
    WHERE NOT i.paid GROUP BY p.id, p.full_name HAVING sum(balance(i.id)) > 0;
CREATE VIEW staff_directory AS
    SELECT s.id, s.full_name, d.name AS department, string_agg(r.name, ', ' ORDER BY r.name) AS roles,
        CASE WHEN s.salary > 5000 THEN 'senior' ELSE 'junior' END AS grade
    FROM staff s JOIN department d ON d.id = s.department_id
    LEFT JOIN staff_role sr ON sr.staff_id = s.id LEFT JOIN role r ON r.id = sr.role_id
    WHERE s.active GROUP BY s.id, d.name;
CREATE VIEW abnormal AS
    SELECT p.full_name, t.name AS test, r.value, r.flag, r.taken
    FROM lab_result r JOIN lab_test t ON t.id = r.test_id JOIN visit v ON v.id = r.visit_id
    JOIN appointment a ON a.id = v.appointment_id JOIN patient p ON p.id = a.patient_id
    WHERE r.flag IS NOT NULL;
CREATE MATERIALIZED VIEW revenue AS
    SELECT date_trunc('month', i.issued)::date AS month, sum(l.amount) AS amount, count(DISTINCT i.id) AS invoices
    FROM invoice i JOIN invoice_line l ON l.invoice_id = i.id GROUP BY 1;
CREATE UNIQUE INDEX ON revenue (month);
