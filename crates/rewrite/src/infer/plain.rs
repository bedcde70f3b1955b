//! What is known, by name, about PostgreSQL functions that have no protected counterpart.

use contract::TypeCode;

/// Functions that accept any type and return only properties of its shape.
pub(super) fn takes_anything(name: &str) -> bool {
    matches!(
        name,
        "count"
            | "pg_typeof"
            | "pg_column_size"
            | "num_nulls"
            | "num_nonnulls"
            | "array_length"
            | "array_ndims"
            | "array_lower"
            | "array_upper"
            | "cardinality"
    )
}

/// Functions whose literal arguments are names or counts that the result does not contain.
pub(super) fn is_structural(name: &str) -> bool {
    matches!(
        name,
        "nextval"
            | "currval"
            | "setval"
            | "lastval"
            | "current_setting"
            | "generate_series"
            | "generate_subscripts"
            | "to_regclass"
            | "to_regtype"
            | "pg_sleep"
            | "pg_get_serial_sequence"
            | "pg_relation_size"
            | "pg_total_relation_size"
            | "pg_table_size"
            | "pg_indexes_size"
            | "random"
            | "gen_random_uuid"
    )
}

/// Functions that would pack protected values into something plain.
pub(super) fn hides_values(name: &str) -> bool {
    name.contains("json")
        || name.starts_with("xml")
        || name.starts_with("regexp_")
        || matches!(
            name,
            "array_agg"
                | "string_agg"
                | "concat"
                | "concat_ws"
                | "format"
                | "to_char"
                | "to_number"
                | "to_date"
                | "to_timestamp"
                | "quote_literal"
                | "quote_nullable"
                | "md5"
                | "encode"
                | "decode"
                | "stddev"
                | "stddev_pop"
                | "stddev_samp"
                | "variance"
                | "var_pop"
                | "var_samp"
                | "bool_and"
                | "bool_or"
                | "every"
                | "corr"
                | "percentile_cont"
                | "percentile_disc"
                | "mode"
        )
}

/// Functions whose string arguments are formats, names or paths, not values.
pub(super) fn takes_formats(name: &str) -> bool {
    let prefixes = ["to_", "make_", "pg_", "has_", "json", "date_"];
    prefixes.iter().any(|p| name.starts_with(p))
        || matches!(
            name,
            "timezone" | "nextval" | "currval" | "setval" | "current_setting" | "age" | "extract"
        )
}

/// Functions whose numeric arguments are positions, counts or options; the result derives from
/// other arguments.
pub(super) fn takes_counts(name: &str) -> bool {
    name.starts_with("regexp_")
        || name.starts_with("array_")
        || matches!(
            name,
            "substr"
                | "substring"
                | "left"
                | "right"
                | "lpad"
                | "rpad"
                | "repeat"
                | "split_part"
                | "overlay"
                | "round"
                | "trunc"
                | "string_to_array"
                | "trim_array"
                | "get_bit"
                | "get_byte"
                | "ntile"
        )
}

pub(super) fn plain_result(name: &str) -> Option<TypeCode> {
    use TypeCode::{Text, Timestamp, Timestamptz};
    match name {
        "now"
        | "clock_timestamp"
        | "statement_timestamp"
        | "transaction_timestamp"
        | "to_timestamp" => Some(Timestamptz),
        "to_char" | "md5" | "concat" | "concat_ws" | "format" | "initcap" | "lpad" | "rpad"
        | "repeat" | "split_part" | "translate" | "string_agg" | "regexp_replace" => Some(Text),
        "make_timestamp" => Some(Timestamp),
        _ => None,
    }
}
