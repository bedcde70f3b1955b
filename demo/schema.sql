-- A payroll as the application declares it: enc_T in place of T protects a column.

CREATE SCHEMA payroll;

CREATE TABLE payroll.department (
    id   integer PRIMARY KEY,
    name text NOT NULL
);

CREATE TABLE payroll.employee (
    id            integer PRIMARY KEY,
    department_id integer NOT NULL REFERENCES payroll.department,
    email         enc_varchar(60) NOT NULL UNIQUE,
    name          enc_text NOT NULL,
    born          enc_date NOT NULL,
    hired         date NOT NULL,
    salary        enc_numeric(10, 2) NOT NULL,
    sick_days     enc_int4 NOT NULL,
    last_review   enc_timestamptz,
    diagnosis     enc_text
);

CREATE INDEX employee_salary ON payroll.employee (salary);
