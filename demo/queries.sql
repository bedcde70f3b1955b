-- The demo's queries. The tests run each through every client.

-- The best paid.
SELECT id, name, born, salary FROM payroll.employee
WHERE salary > 120000 ORDER BY salary DESC, id LIMIT 5;

-- By department.
SELECT d.name AS department, count(*) AS people, round(avg(e.salary), 2) AS average,
       min(e.born) AS oldest, max(e.salary) AS highest
FROM payroll.employee e JOIN payroll.department d ON d.id = e.department_id
GROUP BY d.name ORDER BY d.name;

-- Who is ill often, and with what.
SELECT diagnosis, sum(sick_days) AS days FROM payroll.employee
WHERE diagnosis IS NOT NULL GROUP BY diagnosis ORDER BY days DESC, diagnosis;

-- By a pattern and a range of dates.
SELECT name, email FROM payroll.employee
WHERE name LIKE '%ö%' AND born BETWEEN date '1970-01-01' AND date '1999-12-31' ORDER BY name, id;

-- Reviews by month, raises by birthday.
SELECT extract(month FROM last_review) AS month, count(*) AS reviews FROM payroll.employee
WHERE last_review >= timestamptz '2025-06-01 00:00+00' GROUP BY month ORDER BY month;
