//! The 22 queries of TPC-H, against a schema in which all columns but keys are
//! protected, and against one in which none is. In the first, no constant may be
//! left but limits; in the second, nothing may change. The texts that come out
//! are in `tpch/*.out` (`UPDATE=1 cargo test` writes them; review the diff).

mod common;
use common::{relation, show};
use rewrite::{Schema, analyze};
use std::path::PathBuf;

const TABLES: [&str; 8] = [
    "region: r_regionkey int4, r_name bpchar, r_comment varchar",
    "nation: n_nationkey int4, n_name bpchar, n_regionkey int4, n_comment varchar",
    "supplier: s_suppkey int4, s_name bpchar, s_address varchar, s_nationkey int4, s_phone bpchar, s_acctbal numeric, s_comment varchar",
    "customer: c_custkey int4, c_name varchar, c_address varchar, c_nationkey int4, c_phone bpchar, c_acctbal numeric, c_mktsegment bpchar, c_comment varchar",
    "part: p_partkey int4, p_name varchar, p_mfgr bpchar, p_brand bpchar, p_type varchar, p_size int4, p_container bpchar, p_retailprice numeric, p_comment varchar",
    "partsupp: ps_partkey int4, ps_suppkey int4, ps_availqty int4, ps_supplycost numeric, ps_comment varchar",
    "orders: o_orderkey int8, o_custkey int4, o_orderstatus bpchar, o_totalprice numeric, o_orderdate date, o_orderpriority bpchar, o_clerk bpchar, o_shippriority int4, o_comment varchar",
    "lineitem: l_orderkey int8, l_partkey int4, l_suppkey int4, l_linenumber int4, l_quantity numeric, l_extendedprice numeric, l_discount numeric, l_tax numeric, l_returnflag bpchar, l_linestatus bpchar, l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct bpchar, l_shipmode bpchar, l_comment varchar",
];

fn schema(protected: bool) -> Schema {
    let mut schema = Schema::default();
    schema.set_search_path(["public"]);
    for table in TABLES {
        let (name, columns) = table.split_once(':').expect("a colon");
        let columns: Vec<String> = columns
            .split(',')
            .map(|column| {
                let (name, ty) = column.trim().split_once(' ').expect("a type");
                let enc = protected && !name.ends_with("key");
                format!("{name} {}{ty}", if enc { "enc_" } else { "" })
            })
            .collect();
        relation(
            &mut schema,
            &format!("public.{name}: {}", columns.join(", ")),
        );
    }
    schema
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tpch")
}

fn query(number: u32) -> String {
    std::fs::read_to_string(directory().join(format!("q{number:02}.sql"))).expect("a query")
}

fn rewritten(sql: &str, schema: &Schema) -> String {
    let mut statements = analyze(sql, schema).unwrap_or_else(|r| panic!("{r:?}\n{sql}"));
    let mut all = statements.remove(0);
    for mut more in statements {
        all.edits.append(&mut more.edits);
    }
    show(sql, &all)
}

#[test]
fn protected() {
    let schema = schema(true);
    for number in 1..=22 {
        let got = rewritten(&query(number), &schema);
        let path = directory().join(format!("q{number:02}.out"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &got).expect("written");
        }
        assert_eq!(
            got,
            std::fs::read_to_string(&path).unwrap_or_default(),
            "query {number}"
        );
    }
}

/// What is left after the envelopes are taken out has no constants, but for
/// limits and the results of CASE that nothing protected meets (queries 12).
#[test]
fn no_constant_is_left() {
    let schema = schema(true);
    for number in 1..=22 {
        let mut text = rewritten(&query(number), &schema);
        while let (Some(begin), Some(end)) = (text.find("'<<"), text.find(">>'")) {
            text.replace_range(begin..end + 3, "");
        }
        let tokens = pg_query::scan_tokens(&text).expect("scanned");
        let left: Vec<&str> = tokens
            .iter()
            .filter(|t| {
                use pg_query::protobuf::Token;
                matches!(t.token(), Token::Iconst | Token::Fconst | Token::Sconst)
            })
            .map(|t| &text[t.start as usize..t.end as usize])
            .collect();
        let expected: &[&str] = match number {
            2 | 18 | 21 => &["100"],
            3 => &["10"],
            10 => &["20"],
            12 => &["1", "0", "1", "0"],
            _ => &[],
        };
        assert_eq!(left, expected, "query {number}: {text}");
    }
}

#[test]
fn plain() {
    let schema = schema(false);
    for number in 1..=22 {
        let sql = query(number);
        assert_eq!(rewritten(&sql, &schema), sql, "query {number}");
    }
}
