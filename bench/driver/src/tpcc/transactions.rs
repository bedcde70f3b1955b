//! The five transactions (clause 2), one statement after another, as an application
//! without stored procedures runs them.
use super::data::{CUSTOMERS, DISTRICTS, ITEMS, last_name};
use crate::params;
use crate::random::Random;
use crate::session::{Rows, Session, Value};
use crate::wire::{Error, Result};

/// A terminal: it belongs to a warehouse.
pub struct Terminal {
    session: Session,
    random: Random,
    warehouses: i64,
    home: i64,
    deck: Vec<u8>,
}

/// Of 23 cards 10 are new orders and 10 payments: the standard's mix (clause 5.2.4.2).
const DECK: [(u8, usize); 5] = [(b'n', 10), (b'p', 10), (b'o', 1), (b'd', 1), (b's', 1)];

/// Why a transaction ended without commit.
enum End {
    Failed(Error),
    /// An order of an item that does not exist: one in a hundred is rolled back.
    Unknown,
}

impl From<Error> for End {
    fn from(error: Error) -> End {
        End::Failed(error)
    }
}

type Step<T = ()> = std::result::Result<T, End>;

impl Terminal {
    pub fn new(session: Session, number: usize, warehouses: i64, seed: u64) -> Terminal {
        Terminal {
            session,
            random: Random::new(seed + number as u64),
            warehouses,
            home: number as i64 % warehouses + 1,
            deck: Vec::new(),
        }
    }

    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// One transaction, and its kind.
    pub fn next(&mut self) -> Result<&'static str> {
        if self.deck.is_empty() {
            for (card, count) in DECK {
                self.deck.extend(std::iter::repeat_n(card, count));
            }
            for i in (1..self.deck.len()).rev() {
                self.deck.swap(i, self.random.next() as usize % (i + 1));
            }
        }
        let (kind, done) = match self.deck.pop() {
            Some(b'n') => ("new_order", self.transaction(Terminal::new_order)),
            Some(b'p') => ("payment", self.transaction(Terminal::payment)),
            Some(b'o') => ("order_status", self.transaction(Terminal::order_status)),
            Some(b'd') => ("delivery", self.transaction(Terminal::delivery)),
            _ => ("stock_level", self.transaction(Terminal::stock_level)),
        };
        done.map(|()| kind)
    }

    fn transaction(&mut self, body: fn(&mut Terminal) -> Step) -> Result<()> {
        self.session.run("BEGIN", &[])?;
        match body(self) {
            Ok(()) => self.session.run("COMMIT", &[]).map(|_| ()),
            Err(End::Unknown) => self.session.run("ROLLBACK", &[]).map(|_| ()),
            Err(End::Failed(error)) => {
                self.session.run("ROLLBACK", &[])?;
                Err(error)
            }
        }
    }

    fn rows(&mut self, sql: &'static str, values: &[Value]) -> Result<Rows> {
        self.session.run(sql, values).map(|(rows, _)| rows)
    }

    /// The one row.
    fn row(&mut self, sql: &'static str, values: &[Value]) -> Result<Vec<Option<String>>> {
        let told = || Error::new(format!("no row: {}", &sql[..sql.len().min(60)]));
        self.rows(sql, values)?.into_iter().next().ok_or_else(told)
    }

    fn district(&mut self) -> i64 {
        self.random.between(1, DISTRICTS)
    }

    fn customer(&mut self) -> i64 {
        self.random.skewed(1023, 1, CUSTOMERS)
    }

    /// Another warehouse in one of a hundred cases of `percent`, if there is one.
    fn supplier(&mut self, percent: i64) -> i64 {
        if self.warehouses == 1 || !self.random.chance(percent) {
            return self.home;
        }
        let other = self.random.between(1, self.warehouses - 1);
        if other >= self.home { other + 1 } else { other }
    }

    fn new_order(&mut self) -> Step {
        let (w, d, c) = (self.home, self.district(), self.customer());
        let count = self.random.between(5, 15);
        let fails = self.random.chance(1);
        self.row(
            "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
             WHERE w_id = $1 AND c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
            params![w, w, d, c],
        )?;
        let row = self.row(
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 \
             RETURNING d_next_o_id, d_tax",
            params![w, d],
        )?;
        let o = number(&row, 0)? - 1;
        let mut lines: Vec<(i64, i64)> = (0..count)
            .map(|_| (self.random.skewed(8191, 1, ITEMS), self.supplier(1)))
            .collect();
        let local = i64::from(lines.iter().all(|(_, supplier)| *supplier == w));
        // In one order, so that two orders do not wait for each other.
        lines.sort_unstable();
        self.rows(
            "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            params![o, d, w, c, NOW, count, local],
        )?;
        self.rows(
            "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)",
            params![o, d, w],
        )?;
        for (at, (item, supplier)) in (1..).zip(lines) {
            let item = if fails && at == count {
                ITEMS + 1
            } else {
                item
            };
            self.order_line(o, d, at, item, supplier)?;
        }
        Ok(())
    }

    fn order_line(&mut self, o: i64, d: i64, at: i64, item: i64, supplier: i64) -> Step {
        let w = self.home;
        let quantity = self.random.between(1, 10);
        let found = self.rows(
            "SELECT i_price, i_name, i_data FROM item WHERE i_id = $1",
            params![item],
        )?;
        let price = cents(found.first().ok_or(End::Unknown)?, 0)?;
        let stock = self.row(STOCK[d as usize - 1], params![item, supplier])?;
        let left = number(&stock, 0)? - quantity;
        let left = if left >= 10 { left } else { left + 91 };
        let remote = i64::from(supplier != w);
        self.rows(
            "UPDATE stock SET s_quantity = $1, s_ytd = s_ytd + $2, s_order_cnt = s_order_cnt + 1, \
             s_remote_cnt = s_remote_cnt + $3 WHERE s_i_id = $4 AND s_w_id = $5",
            params![left, quantity, remote, item, supplier],
        )?;
        let info = stock.get(1).cloned().flatten().unwrap_or_default();
        self.rows(
            "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, \
             ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            params![
                o,
                d,
                w,
                at,
                item,
                supplier,
                quantity,
                money(price * quantity),
                info
            ],
        )?;
        Ok(())
    }

    /// By name in 60 of 100 cases: the one in the middle, by first name.
    fn find_customer(&mut self, w: i64, d: i64) -> Result<i64> {
        if !self.random.chance(60) {
            return Ok(self.customer());
        }
        let name = last_name(self.random.skewed(255, 0, 999));
        let found = self.rows(
            "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 \
             ORDER BY c_first",
            params![w, d, name],
        )?;
        let middle = found.get(found.len() / 2);
        number(
            middle.ok_or_else(|| Error::new("no customer of this name"))?,
            0,
        )
    }

    fn payment(&mut self) -> Step {
        let (w, d) = (self.home, self.district());
        let amount = money(self.random.between(100, 500_000));
        let customer_w = self.supplier(15);
        let customer_d = if customer_w == w { d } else { self.district() };
        self.row(
            "UPDATE warehouse SET w_ytd = w_ytd + $1 WHERE w_id = $2 \
             RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
            params![amount.clone(), w],
        )?;
        self.row(
            "UPDATE district SET d_ytd = d_ytd + $1 WHERE d_w_id = $2 AND d_id = $3 \
             RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
            params![amount.clone(), w, d],
        )?;
        let c = self.find_customer(customer_w, customer_d)?;
        let row = self.row(
            "UPDATE customer SET c_balance = c_balance - $1, c_ytd_payment = c_ytd_payment + $2, \
             c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = $3 AND c_d_id = $4 AND c_id = $5 \
             RETURNING c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, \
             c_state, c_zip, c_phone, c_since, c_credit_lim, c_discount, c_balance",
            params![amount.clone(), amount.clone(), customer_w, customer_d, c],
        )?;
        if row.first().cloned().flatten().as_deref() == Some("BC") {
            let row = self.row(
                "SELECT c_data FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
                params![customer_w, customer_d, c],
            )?;
            let old = row.first().cloned().flatten().unwrap_or_default();
            let mut notes = format!("{c} {customer_d} {customer_w} {d} {w} {amount} {old}");
            notes.truncate(500);
            self.rows(
                "UPDATE customer SET c_data = $1 WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
                params![notes, customer_w, customer_d, c],
            )?;
        }
        self.rows(
            "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, \
             h_data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            params![c, customer_d, customer_w, d, w, NOW, amount, "payment"],
        )?;
        Ok(())
    }

    fn order_status(&mut self) -> Step {
        let (w, d) = (self.home, self.district());
        let c = self.find_customer(w, d)?;
        self.row(
            "SELECT c_first, c_middle, c_last, c_balance FROM customer \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            params![w, d, c],
        )?;
        let order = self.row(
            "SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = $1 AND o_d_id = $2 \
             AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1",
            params![w, d, c],
        )?;
        self.rows(
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d \
             FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            params![w, d, number(&order, 0)?],
        )?;
        Ok(())
    }

    fn delivery(&mut self) -> Step {
        let w = self.home;
        let carrier = self.random.between(1, 10);
        for d in 1..=DISTRICTS {
            let oldest = self.rows(
                "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 \
                 ORDER BY no_o_id LIMIT 1",
                params![w, d],
            )?;
            let Some(oldest) = oldest.first() else {
                continue;
            };
            let o = number(oldest, 0)?;
            let (_, deleted) = self.session.run(
                "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3",
                params![w, d, o],
            )?;
            if deleted == 0 {
                continue; // another delivery was quicker
            }
            let order = self.row(
                "UPDATE orders SET o_carrier_id = $1 WHERE o_w_id = $2 AND o_d_id = $3 \
                 AND o_id = $4 RETURNING o_c_id",
                params![carrier, w, d, o],
            )?;
            self.rows(
                "UPDATE order_line SET ol_delivery_d = $1 WHERE ol_w_id = $2 AND ol_d_id = $3 \
                 AND ol_o_id = $4",
                params![NOW, w, d, o],
            )?;
            let sum = self.row(
                "SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 \
                 AND ol_o_id = $3",
                params![w, d, o],
            )?;
            self.rows(
                "UPDATE customer SET c_balance = c_balance + $1, \
                 c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
                params![money(cents(&sum, 0)?), w, d, number(&order, 0)?],
            )?;
        }
        Ok(())
    }

    fn stock_level(&mut self) -> Step {
        let (w, d) = (self.home, self.district());
        let row = self.row(
            "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2",
            params![w, d],
        )?;
        let next = number(&row, 0)?;
        let threshold = self.random.between(10, 20);
        self.row(
            "SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = $1 \
             AND ol_d_id = $2 AND ol_o_id < $3 AND ol_o_id >= $4 AND s_w_id = $5 \
             AND s_i_id = ol_i_id AND s_quantity < $6",
            params![w, d, next, next - 20, w, threshold],
        )?;
        Ok(())
    }
}

const NOW: &str = "2026-11-21 12:00:00";

macro_rules! stock {
    ($($district:literal),*) => { [$(concat!(
        "SELECT s_quantity, s_dist_", $district,
        ", s_data FROM stock WHERE s_i_id = $1 AND s_w_id = $2 FOR UPDATE"
    )),*] };
}
const STOCK: [&str; 10] = stock!("01", "02", "03", "04", "05", "06", "07", "08", "09", "10");

fn field(row: &[Option<String>], at: usize) -> Result<&str> {
    let found = row.get(at).and_then(Option::as_deref);
    found.ok_or_else(|| Error::new("NULL where a value must be"))
}

fn number(row: &[Option<String>], at: usize) -> Result<i64> {
    field(row, at)?
        .parse()
        .map_err(|_| Error::new("not a number"))
}

/// An amount with two digits, in cents.
fn cents(row: &[Option<String>], at: usize) -> Result<i64> {
    let digits = field(row, at)?.replace('.', "");
    digits.parse().map_err(|_| Error::new("not an amount"))
}

fn money(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}
