//! The nine tables, and which of their columns each policy protects.
use clap::ValueEnum;

/// What is protected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Policy {
    /// Nothing.
    Plain,
    /// What identifies a customer: names, addresses, phone, notes.
    Customer,
    /// All columns but keys.
    Weak,
    /// All columns.
    Strong,
}

/// A table: its columns with types (a key's name is in `keys`, too), its keys, its
/// primary key.
pub struct Table {
    pub name: &'static str,
    columns: &'static str,
    keys: &'static str,
    primary: &'static str,
}

pub const TABLES: [Table; 9] = [
    Table {
        name: "warehouse",
        columns: "w_id int, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), \
            w_city varchar(20), w_state char(2), w_zip char(9), w_tax numeric(4|4), \
            w_ytd numeric(12|2)",
        keys: "w_id",
        primary: "w_id",
    },
    Table {
        name: "district",
        columns: "d_id int, d_w_id int, d_name varchar(10), d_street_1 varchar(20), \
            d_street_2 varchar(20), d_city varchar(20), d_state char(2), d_zip char(9), \
            d_tax numeric(4|4), d_ytd numeric(12|2), d_next_o_id int",
        keys: "d_id d_w_id d_next_o_id",
        primary: "d_w_id, d_id",
    },
    Table {
        name: "customer",
        columns: "c_id int, c_d_id int, c_w_id int, c_first varchar(16), c_middle char(2), \
            c_last varchar(16), c_street_1 varchar(20), c_street_2 varchar(20), \
            c_city varchar(20), c_state char(2), c_zip char(9), c_phone char(16), \
            c_since timestamp, c_credit char(2), c_credit_lim numeric(12|2), \
            c_discount numeric(4|4), c_balance numeric(12|2), c_ytd_payment numeric(12|2), \
            c_payment_cnt int, c_delivery_cnt int, c_data varchar(500)",
        keys: "c_id c_d_id c_w_id",
        primary: "c_w_id, c_d_id, c_id",
    },
    Table {
        name: "history",
        columns: "h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, \
            h_date timestamp, h_amount numeric(6|2), h_data varchar(24)",
        keys: "h_c_id h_c_d_id h_c_w_id h_d_id h_w_id",
        primary: "",
    },
    Table {
        name: "new_order",
        columns: "no_o_id int, no_d_id int, no_w_id int",
        keys: "no_o_id no_d_id no_w_id",
        primary: "no_w_id, no_d_id, no_o_id",
    },
    Table {
        name: "orders",
        columns: "o_id int, o_d_id int, o_w_id int, o_c_id int, o_entry_d timestamp, \
            o_carrier_id int, o_ol_cnt int, o_all_local int",
        keys: "o_id o_d_id o_w_id o_c_id",
        primary: "o_w_id, o_d_id, o_id",
    },
    Table {
        name: "order_line",
        columns: "ol_o_id int, ol_d_id int, ol_w_id int, ol_number int, ol_i_id int, \
            ol_supply_w_id int, ol_delivery_d timestamp, ol_quantity int, \
            ol_amount numeric(6|2), ol_dist_info char(24)",
        keys: "ol_o_id ol_d_id ol_w_id ol_number ol_i_id ol_supply_w_id",
        primary: "ol_w_id, ol_d_id, ol_o_id, ol_number",
    },
    Table {
        name: "item",
        columns: "i_id int, i_im_id int, i_name varchar(24), i_price numeric(5|2), \
            i_data varchar(50)",
        keys: "i_id i_im_id",
        primary: "i_id",
    },
    Table {
        name: "stock",
        columns: "s_i_id int, s_w_id int, s_quantity int, s_dist_01 char(24), \
            s_dist_02 char(24), s_dist_03 char(24), s_dist_04 char(24), s_dist_05 char(24), \
            s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24), s_dist_09 char(24), \
            s_dist_10 char(24), s_ytd int, s_order_cnt int, s_remote_cnt int, \
            s_data varchar(50)",
        keys: "s_i_id s_w_id",
        primary: "s_w_id, s_i_id",
    },
];

const PERSONAL: &str = "c_first c_middle c_last c_street_1 c_street_2 c_city c_state c_zip \
    c_phone c_data";

fn among(name: &str, list: &str) -> bool {
    list.split(' ').any(|word| word == name)
}

fn protected(policy: Policy, table: &Table, column: &str) -> bool {
    match policy {
        Policy::Plain => false,
        Policy::Customer => among(column, PERSONAL),
        Policy::Weak => !among(column, table.keys),
        Policy::Strong => true,
    }
}

/// The protected twin's name: `char(n)` is `bpchar`.
fn twin(kind: &str) -> String {
    let kind = kind.replace("char(", "bpchar(").replace("varbp", "var");
    let kind = if kind == "int" { "int4".into() } else { kind };
    format!("enc_{kind}")
}

/// What makes a table.
pub fn create(table: &Table, policy: Policy) -> String {
    let columns: Vec<String> = table
        .columns
        .split(", ")
        .map(|column| {
            let (name, kind) = column.trim().split_once(' ').unwrap_or((column, ""));
            // The comma of numeric(p,s) would have split the list.
            let kind = kind.replace('|', ", ");
            match protected(policy, table, name) {
                true => format!("{name} {}", twin(&kind)),
                false => format!("{name} {kind}"),
            }
        })
        .collect();
    format!("CREATE TABLE {} ({})", table.name, columns.join(", "))
}

/// Keys and indexes, for the filled tables.
pub fn constraints() -> Vec<String> {
    let mut all: Vec<String> = TABLES
        .iter()
        .filter(|table| !table.primary.is_empty())
        .map(|t| format!("ALTER TABLE {} ADD PRIMARY KEY ({})", t.name, t.primary))
        .collect();
    all.push("CREATE INDEX ON customer (c_w_id, c_d_id, c_last, c_first)".into());
    all.push("CREATE INDEX ON orders (o_w_id, o_d_id, o_c_id, o_id)".into());
    all
}
