"""The application for schema.sql: SQLAlchemy's ORM, some SQL of its own, and triggers, functions
and views. It knows nothing about Confide; see tests/compat/clients/checks.py.

`PROGRAM URL create` fills the tables, `PROGRAM URL run` does what users do.
"""

import contextlib
import datetime as dt
import decimal
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "compat" / "clients"))

from checks import check, main
from sqlalchemy import Computed, DateTime, Enum, ForeignKey, create_engine, func, select, text
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    mapped_column,
    relationship,
    selectinload,
)

D = decimal.Decimal
UTC = dt.UTC


class Base(DeclarativeBase):
    pass


def key(table, **options):
    return mapped_column(ForeignKey(f"{table}.id"), **options)


class Clinic(Base):
    __tablename__ = "clinic"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    country: Mapped[str]
    opened: Mapped[dt.date] = mapped_column(server_default=text("'2001-01-01'"))
    departments: Mapped[list["Department"]] = relationship(back_populates="clinic")


class Department(Base):
    __tablename__ = "department"
    id: Mapped[int] = mapped_column(primary_key=True)
    clinic_id: Mapped[int] = key("clinic")
    name: Mapped[str]
    clinic: Mapped[Clinic] = relationship(back_populates="departments")
    staff: Mapped[list["Staff"]] = relationship(back_populates="department")


class StaffRole(Base):
    __tablename__ = "staff_role"
    staff_id: Mapped[int] = key("staff", primary_key=True)
    role_id: Mapped[int] = key("role", primary_key=True)


class Role(Base):
    __tablename__ = "role"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class Staff(Base):
    __tablename__ = "staff"
    id: Mapped[int] = mapped_column(primary_key=True)
    department_id: Mapped[int] = key("department")
    login: Mapped[str]
    full_name: Mapped[str]
    email: Mapped[str | None]
    salary: Mapped[D]
    hired: Mapped[dt.date]
    active: Mapped[bool] = mapped_column(default=True)
    department: Mapped[Department] = relationship(back_populates="staff")
    roles: Mapped[list[Role]] = relationship(secondary="staff_role", order_by="Role.id")


class Insurer(Base):
    __tablename__ = "insurer"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    covers: Mapped[D] = mapped_column(server_default=text("80"))


class Patient(Base):
    __tablename__ = "patient"
    id: Mapped[int] = mapped_column(primary_key=True)
    ssn: Mapped[str]
    first_name: Mapped[str]
    last_name: Mapped[str]
    full_name: Mapped[str] = mapped_column(Computed("first_name || ' ' || last_name"))
    born: Mapped[dt.date]
    email: Mapped[str | None]
    phone: Mapped[str | None] = mapped_column(server_default=text("'unknown'"))
    notes: Mapped[str | None]
    addresses: Mapped[list["Address"]] = relationship(cascade="all", passive_deletes=True)
    policies: Mapped[list["Policy"]] = relationship(cascade="all", passive_deletes=True)
    appointments: Mapped[list["Appointment"]] = relationship(
        back_populates="patient", cascade="all", passive_deletes=True
    )
    invoices: Mapped[list["Invoice"]] = relationship(back_populates="patient")


class Address(Base):
    __tablename__ = "address"
    id: Mapped[int] = mapped_column(primary_key=True)
    patient_id: Mapped[int] = key("patient")
    street: Mapped[str]
    city: Mapped[str]
    zip: Mapped[str | None]
    country: Mapped[str | None]


class Policy(Base):
    __tablename__ = "policy"
    id: Mapped[int] = mapped_column(primary_key=True)
    patient_id: Mapped[int] = key("patient")
    insurer_id: Mapped[int] = key("insurer")
    number: Mapped[str]
    valid_from: Mapped[dt.date]
    valid_to: Mapped[dt.date | None]
    insurer: Mapped[Insurer] = relationship()


class Appointment(Base):
    __tablename__ = "appointment"
    id: Mapped[int] = mapped_column(primary_key=True)
    patient_id: Mapped[int] = key("patient")
    staff_id: Mapped[int] = key("staff")
    starts: Mapped[dt.datetime] = mapped_column(DateTime(timezone=True))
    minutes: Mapped[int] = mapped_column(default=20)
    status: Mapped[str] = mapped_column(
        Enum("booked", "done", "missed", name="appointment_status"), default="booked"
    )
    reason: Mapped[str | None]
    patient: Mapped[Patient] = relationship(back_populates="appointments")
    staff: Mapped[Staff] = relationship()
    visit: Mapped["Visit | None"] = relationship(back_populates="appointment")


class Visit(Base):
    __tablename__ = "visit"
    id: Mapped[int] = mapped_column(primary_key=True)
    appointment_id: Mapped[int] = key("appointment")
    weight: Mapped[D | None]
    pulse: Mapped[int | None]
    findings: Mapped[str | None]
    appointment: Mapped[Appointment] = relationship(back_populates="visit")
    diagnoses: Mapped[list["Diagnosis"]] = relationship(order_by="Diagnosis.code")
    prescriptions: Mapped[list["Prescription"]] = relationship()
    results: Mapped[list["LabResult"]] = relationship(order_by="LabResult.id")


class DiagnosisCode(Base):
    __tablename__ = "diagnosis_code"
    code: Mapped[str] = mapped_column(primary_key=True)
    title: Mapped[str]


class Diagnosis(Base):
    __tablename__ = "diagnosis"
    visit_id: Mapped[int] = key("visit", primary_key=True)
    code: Mapped[str] = mapped_column(ForeignKey("diagnosis_code.code"), primary_key=True)
    note: Mapped[str | None]
    meaning: Mapped[DiagnosisCode] = relationship()


class Drug(Base):
    __tablename__ = "drug"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class Prescription(Base):
    __tablename__ = "prescription"
    id: Mapped[int] = mapped_column(primary_key=True)
    visit_id: Mapped[int] = key("visit")
    drug_id: Mapped[int] = key("drug")
    dose: Mapped[D]
    days: Mapped[int] = mapped_column(default=7)
    instructions: Mapped[str | None]
    drug: Mapped[Drug] = relationship()


class LabTest(Base):
    __tablename__ = "lab_test"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    low: Mapped[float | None]
    high: Mapped[float | None]


class LabResult(Base):
    __tablename__ = "lab_result"
    id: Mapped[int] = mapped_column(primary_key=True)
    visit_id: Mapped[int] = key("visit")
    test_id: Mapped[int] = key("lab_test")
    value: Mapped[float]
    flag: Mapped[str | None]
    taken: Mapped[dt.datetime]
    test: Mapped[LabTest] = relationship()


class Invoice(Base):
    __tablename__ = "invoice"
    id: Mapped[int] = mapped_column(primary_key=True)
    patient_id: Mapped[int] = key("patient")
    issued: Mapped[dt.date]
    total: Mapped[D] = mapped_column(server_default=text("0"))
    paid: Mapped[bool] = mapped_column(server_default=text("false"))
    patient: Mapped[Patient] = relationship(back_populates="invoices")
    lines: Mapped[list["Line"]] = relationship(order_by="Line.id", cascade="all, delete-orphan")
    payments: Mapped[list["Payment"]] = relationship(order_by="Payment.id")


class Line(Base):
    __tablename__ = "invoice_line"
    id: Mapped[int] = mapped_column(primary_key=True)
    invoice_id: Mapped[int] = key("invoice")
    description: Mapped[str]
    quantity: Mapped[int]
    unit_price: Mapped[D]
    amount: Mapped[D] = mapped_column(Computed("quantity * unit_price"))


class Payment(Base):
    __tablename__ = "payment"
    id: Mapped[int] = mapped_column(primary_key=True)
    invoice_id: Mapped[int] = key("invoice")
    paid_on: Mapped[dt.date]
    amount: Mapped[D]
    iban: Mapped[str | None]


def engine(url):
    return create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))


NAMES = ["Ann Miller", "Bob O'Hara", "Änne Öz", "Carl Under_score", "Dora 100%", "Eve Miller"]


def fixed(session):
    """What does not change."""
    session.execute(text("INSERT INTO country VALUES ('AT', 'Austria'), ('PT', 'Portugal')"))
    session.execute(text("INSERT INTO diagnosis_code VALUES ('J06', 'Cold'), ('I10', 'Pressure')"))
    session.add_all([Role(id=1, name="doctor"), Role(id=2, name="head")])
    session.add_all([Insurer(id=1, name="Alpha"), Insurer(id=2, name="Beta", covers=D("66.5"))])
    session.add_all([Drug(id=1, name="Aspirin"), Drug(id=2, name="Ibuprofen")])
    session.add_all(
        [LabTest(id=1, name="Iron", low=0.5, high=1.75), LabTest(id=2, name="Sugar", high=5.5)]
    )
    session.add_all(
        [Clinic(id=1, name="North", country="AT"), Clinic(id=2, name="South", country="PT")]
    )
    session.flush()
    session.add_all([Department(id=n, clinic_id=n % 2 + 1, name=f"Ward {n}") for n in (1, 2, 3)])
    session.flush()
    session.add_all(
        Staff(
            id=n,
            department_id=n % 3 + 1,
            login=f"s{n}",
            full_name=f"Doctor {n}",
            email=f"d{n}@example.org",
            salary=D(3000 + n * 1000) + D("0.25"),
            hired=dt.date(2010 + n, n, n),
        )
        for n in range(1, 5)
    )
    session.flush()
    session.add_all(StaffRole(staff_id=s, role_id=r) for s, r in ((1, 1), (1, 2), (2, 1), (3, 1)))


def patients(session):
    for n, name in enumerate(NAMES, 1):
        first, last = name.split(" ", 1)
        patient = Patient(
            id=n,
            ssn=f"{n:03}-{n:02}-{n:04}",
            first_name=first,
            last_name=last,
            born=dt.date(1950 + n * 7, n, 28),
            email=None if n == 4 else f" {first}@Example.ORG ",
            notes=f"canary-note-{n}",
        )
        patient.addresses = [Address(id=n, street=f"Street {n}", city="Wien", zip=str(1000 + n))]
        patient.policies = [
            Policy(id=n, insurer_id=n % 2 + 1, number=f"P{n:05}", valid_from=dt.date(2020, n, 1))
        ]
        starts = dt.datetime(2024, n, 1, 9, 30, tzinfo=UTC)
        booked = Appointment(id=n, staff_id=n % 4 + 1, starts=starts, reason=f"Reason {n % 3}")
        booked.visit = Visit(id=n, weight=D(60 + n) + D("0.5"), pulse=70 + n, findings=f"F{n}")
        booked.visit.diagnoses = [
            Diagnosis(code=c, note=f"{c} {n}") for c in ("J06", "I10")[: n % 3]
        ]
        booked.visit.prescriptions = [Prescription(id=n, drug_id=n % 2 + 1, dose=D(n) / 4)]
        taken = dt.datetime(2024, n, 1, 10)
        booked.visit.results = [LabResult(id=n, test_id=n % 2 + 1, value=n * 0.9, taken=taken)]
        patient.appointments = [booked]
        invoice = Invoice(id=n, issued=dt.date(2024, (n + 1) // 2, n))
        invoice.lines = [
            Line(
                id=n * 10 + k, description=f"Item {k}", quantity=k, unit_price=D(n * 10) + D("0.05")
            )
            for k in (1, 2)
        ]
        patient.invoices = [invoice]
        session.add(patient)
        session.flush()
    for table in ("appointment", "invoice", "invoice_line", "lab_result", "patient", "policy"):
        session.execute(text(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), 1000)"))


def create(url):
    with Session(engine(url)) as session:
        fixed(session)
        patients(session)
        session.execute(text("REFRESH MATERIALIZED VIEW revenue"))
        session.commit()


@contextlib.contextmanager
def session(url):
    made = engine(url)

    @contextlib.contextmanager
    def fresh():
        with made.connect() as connection:
            outer = connection.begin()
            try:
                with Session(connection, join_transaction_mode="create_savepoint") as one:
                    yield one
            finally:
                outer.rollback()

    yield fresh
    made.dispose()


def rows(session, sql, **given):
    return [tuple(row) for row in session.execute(text(sql), given)]


def checked_sql(name, sql, **given):
    def asked(session):
        return rows(session, sql, **given)

    asked.__name__ = name
    check(asked)


@check
def everything(s):
    """All columns of all tables, as the ORM reads them."""
    found = {}
    for table in Base.metadata.sorted_tables:
        columns = [c for c in table.columns]
        found[table.name] = [
            tuple(r) for r in s.execute(select(*columns).order_by(*table.primary_key))
        ]
    return found


@check
def found_by_number(s):
    return s.scalars(select(Patient.full_name).where(Patient.ssn == "003-03-0003")).all()


@check
def page_of_patients(s):
    query = select(Patient).order_by(Patient.last_name, Patient.first_name).limit(3).offset(1)
    return [(p.id, p.full_name, p.email, p.phone) for p in s.scalars(query)]


@check
def searched(s):
    query = select(Patient.id).where(
        Patient.last_name.ilike("%mill%") | Patient.first_name.startswith("Ä", autoescape=True)
    )
    return s.scalars(query.order_by(Patient.id)).all()


@check
def searched_for_special_characters(s):
    query = select(Patient.id).where(Patient.last_name.contains("%", autoescape=True))
    return (
        s.scalars(query).all()
        + s.scalars(select(Patient.id).where(Patient.last_name == "O'Hara")).all()
    )


@check
def whole_record(s):
    load = selectinload(Patient.appointments).selectinload(Appointment.visit)
    query = (
        select(Patient)
        .where(Patient.id == 2)
        .options(load.selectinload(Visit.diagnoses), load.selectinload(Visit.results))
    )
    patient = s.scalars(query).one()
    visit = patient.appointments[0].visit
    return [
        (visit.weight, visit.pulse, visit.findings),
        [(d.meaning.title, d.note) for d in visit.diagnoses],
        [(r.test.name, r.value, r.flag) for r in visit.results],
        [(p.insurer.name, p.number) for p in patient.policies],
    ]


@check
def joined_and_grouped(s):
    query = (
        select(Staff.full_name, func.count(Visit.id), func.avg(Visit.weight), func.max(Visit.pulse))
        .join(Appointment, Appointment.staff_id == Staff.id)
        .join(Visit)
        .group_by(Staff.full_name)
        .having(func.count() > 1)
        .order_by(Staff.full_name)
    )
    return [tuple(row) for row in s.execute(query)]


@check
def exists_and_not(s):
    billed = (
        select(Invoice.id).where(Invoice.patient_id == Patient.id, Invoice.total > 100).exists()
    )
    return [
        s.scalars(select(Patient.id).where(billed).order_by(Patient.id)).all(),
        s.scalars(select(Patient.id).where(~billed).order_by(Patient.born.desc())).all(),
    ]


@check
def salaries_by_window(s):
    ranked = func.rank().over(partition_by=Staff.department_id, order_by=Staff.salary.desc())
    query = select(Staff.login, ranked, func.sum(Staff.salary).over(order_by=Staff.id))
    return [tuple(row) for row in s.execute(query.order_by(Staff.id))]


@check
def new_patient(s):
    s.add(Patient(ssn="999-99-9999", first_name="New", last_name="One", born=dt.date(2000, 2, 29)))
    s.flush()
    found = s.scalars(select(Patient).where(Patient.ssn == "999-99-9999")).one()
    return found.full_name, found.phone, found.email, found.born


@check
def renamed_and_logged(s):
    s.get(Patient, 1).last_name = "Smith"
    s.get(Patient, 2).email = " BOB@Example.org"
    s.delete(s.get(Address, 3))
    s.flush()
    s.expire_all()
    log = "SELECT table_name, row_id, action, old_value, new_value FROM audit ORDER BY id"
    changed = (
        "SELECT full_name, email, updated IS NOT NULL FROM patient WHERE id IN (1, 2) ORDER BY id"
    )
    return rows(s, log), rows(s, changed)


@check
def deleted_with_all(s):
    s.execute(text("DELETE FROM invoice WHERE patient_id = 5"))
    s.delete(s.get(Patient, 5))
    s.flush()
    left = [
        s.scalar(select(func.count()).select_from(t)) for t in (Address, Policy, Visit, LabResult)
    ]
    return left, rows(s, "SELECT action, old_value FROM audit")


@check
def totals_follow_lines(s):
    invoice = s.get(Invoice, 2)
    before = invoice.total
    invoice.lines.append(Line(description="More", quantity=3, unit_price=D("9.99")))
    s.flush()
    s.refresh(invoice)
    more = invoice.total
    invoice.lines.clear()
    s.flush()
    s.refresh(invoice)
    return before, more, invoice.total


@check
def paid(s):
    total = s.get(Invoice, 1).total
    s.add(Payment(invoice_id=1, paid_on=dt.date(2024, 5, 1), amount=total - 1, iban="AT61 1904"))
    s.flush()
    s.refresh(s.get(Invoice, 1))
    some = s.get(Invoice, 1).paid, s.scalar(select(func.balance(1)))
    s.add(Payment(invoice_id=1, paid_on=dt.date(2024, 5, 2), amount=D(1)))
    s.flush()
    s.refresh(s.get(Invoice, 1))
    return some, s.get(Invoice, 1).paid, s.scalar(select(func.balance(1)))


@check
def paid_nothing_error(s):
    s.add(Payment(invoice_id=1, paid_on=dt.date(2024, 5, 1), amount=D(0)))
    s.flush()


@check
def same_time_error(s):
    first = s.get(Appointment, 1)
    later = first.starts + dt.timedelta(minutes=10)
    s.add(Appointment(patient_id=2, staff_id=first.staff_id, starts=later, reason="late"))
    s.flush()


@check
def same_number_error(s):
    s.add(Patient(ssn="001-01-0001", first_name="A", last_name="B", born=dt.date(2000, 1, 1)))
    s.flush()


@check
def too_old_error(s):
    s.add(Patient(ssn="x", first_name="A", last_name="B", born=dt.date(1800, 1, 1)))
    s.flush()


@check
def no_name_error(s):
    s.execute(text("UPDATE patient SET last_name = NULL WHERE id = 1"))


@check
def too_long_error(s):
    s.get(Patient, 1).ssn = "0123456789-0"
    s.flush()


@check
def still_referred_to_error(s):
    s.execute(text("DELETE FROM patient WHERE id = 1"))


@check
def not_a_salary_error(s):
    s.execute(text("UPDATE staff SET salary = -1 WHERE id = 1"))


@check
def flags(s):
    s.add_all(
        LabResult(visit_id=1, test_id=t, value=v, taken=dt.datetime(2024, 2, 2))
        for t, v in ((1, 0.1), (1, 1.0), (1, 9.0), (2, 0.1), (2, 5.6))
    )
    s.flush()
    return rows(s, "SELECT test_id, value, flag FROM lab_result ORDER BY id")


@check
def raised(s):
    s.execute(text("CALL raise_salaries(:p, :d)"), {"p": D("2.5"), "d": 2})
    return rows(s, "SELECT login, salary FROM staff ORDER BY id")


@check
def inserted_in_bulk(s):
    new = [
        {"ssn": f"B{n}", "first_name": f"Bulk {n}", "last_name": "B", "born": dt.date(1990, 1, n)}
        for n in range(1, 25)
    ]
    s.execute(Patient.__table__.insert(), new)
    return rows(s, "SELECT count(*), min(born), max(full_name) FROM patient")


@check
def updated_in_bulk(s):
    changed = s.execute(
        text("UPDATE patient SET notes = notes || ' (seen)', phone = NULL WHERE born < :d"),
        {"d": dt.date(1975, 1, 1)},
    )
    return changed.rowcount, rows(s, "SELECT id, notes, phone FROM patient ORDER BY id")


@check
def inserted_or_updated(s):
    upsert = """INSERT INTO policy (patient_id, insurer_id, number, valid_from)
        VALUES (1, 1, :n, :d) ON CONFLICT (number) DO UPDATE SET valid_from = excluded.valid_from
        RETURNING id > 0, number"""
    found = [rows(s, upsert, n=n, d=dt.date(2025, 1, 1)) for n in ("P00002", "P99999")]
    return found, rows(s, "SELECT patient_id, number, valid_from FROM policy ORDER BY number")


checked_sql("view_patient_list", "SELECT * FROM patient_list ORDER BY id")
checked_sql(
    "view_debtors", "SELECT * FROM debtors WHERE owes > :least ORDER BY owes DESC", least=90
)
checked_sql("view_staff", "SELECT * FROM staff_directory ORDER BY id")
checked_sql("view_abnormal", "SELECT * FROM abnormal ORDER BY taken, test")
checked_sql("view_revenue", "SELECT * FROM revenue ORDER BY month")
checked_sql(
    "calls_age", "SELECT id, age_of(born, :d) FROM patient ORDER BY id", d=dt.date(2024, 7, 1)
)
checked_sql("calls_search", "SELECT * FROM patients_called(:part)", part="ILL")
checked_sql(
    "reported",
    """WITH due AS (SELECT patient_id, sum(total) AS due FROM invoice WHERE NOT paid GROUP BY 1)
    SELECT coalesce(a.city, 'nowhere'), count(*), sum(due), round(avg(due), 2)
    FROM patient p LEFT JOIN due ON due.patient_id = p.id LEFT JOIN address a ON a.patient_id = p.id
    WHERE p.born BETWEEN :a AND :b GROUP BY ROLLUP (a.city) ORDER BY 1, 2""",
    a=dt.date(1955, 1, 1),
    b=dt.date(2000, 1, 1),
)
checked_sql(
    "newest_by_patient",
    "SELECT DISTINCT ON (patient_id) patient_id, reason FROM appointment ORDER BY 1, starts DESC",
)


@check
def refreshed(s):
    s.execute(text("UPDATE invoice_line SET quantity = quantity + 1 WHERE invoice_id < 3"))
    s.execute(text("REFRESH MATERIALIZED VIEW revenue"))
    return rows(s, "SELECT * FROM revenue ORDER BY month")


if __name__ == "__main__":
    main(create, session)
