//! The schema from the server's reports, changed step by step.
use contract::TypeCode;
use rewrite::report::{ColumnRecord, FunctionRecord, Record, RelationRecord, TypeRecord};
use rewrite::{Catalog, ColumnType, Memo, Prepared, Schema};
use std::sync::Arc;

const TYPES: u32 = 1247;
const RELATIONS: u32 = 1259;
const INT4: u32 = 23;
const ENC_TEXT: u32 = 17000;

fn namespace(oid: u32, name: &str) -> Record {
    let name = name.to_owned();
    Record::Namespace { oid, name }
}

fn ty(oid: u32, namespace: u32, name: &str, relation: u32, part: u32) -> Record {
    Record::Type(TypeRecord {
        oid,
        namespace,
        name: name.to_owned(),
        relation,
        part,
        domain: false,
    })
}

/// A relation of the schema `public`, with columns of these types, and its row type.
fn table(oid: u32, name: &str, types: &[u32]) -> [Record; 2] {
    let column = |(at, ty): (usize, &u32)| ColumnRecord {
        number: at as i16 + 1,
        name: format!("c{at}"),
        ty: *ty,
        modifier: -1,
        generated: false,
        identity: false,
    };
    let relation = Record::Relation(RelationRecord {
        oid,
        namespace: 2200,
        name: name.to_owned(),
        kind: 'r',
        row_type: oid + 1,
        columns: types.iter().enumerate().map(column).collect(),
    });
    [relation, ty(oid + 1, 2200, name, oid, 0)]
}

fn function(oid: u32, name: &str, input: u32) -> Record {
    Record::Function(FunctionRecord {
        oid,
        namespace: 2200,
        name: name.to_owned(),
        inputs: vec![input],
        result: INT4,
        all: Vec::new(),
        modes: String::new(),
        names: vec!["a".to_owned()],
        variadic: 0,
        defaults: 0,
        language: String::new(),
        body: String::new(),
        rest: String::new(),
    })
}

fn base() -> Vec<Record> {
    let mut records = vec![
        namespace(11, "pg_catalog"),
        namespace(2200, "public"),
        ty(INT4, 11, "int4", 0, 0),
        ty(ENC_TEXT, 11, "enc_text", 0, 0),
        ty(ENC_TEXT + 1, 11, "_enc_text", 0, ENC_TEXT),
    ];
    records.extend(table(20000, "t", &[INT4, ENC_TEXT, ENC_TEXT + 1]));
    records.extend(table(20010, "plain", &[INT4]));
    // A table with a column of the row type of the one before.
    records.extend(table(20020, "holder", &[20011]));
    records
}

fn column(catalog: &Catalog, table: &str, at: usize) -> ColumnType {
    let relation = catalog.schema().relation(Some("public"), table);
    relation.unwrap().columns.as_ref().unwrap()[at].ty.clone()
}

/// Changes one by one lead to what all records at once give.
#[test]
fn steps() {
    let mut catalog = Catalog::new(&base(), None);
    assert_eq!(column(&catalog, "t", 1), ColumnType::Enc(TypeCode::Text));
    assert_eq!(
        column(&catalog, "t", 2),
        ColumnType::EncArray(TypeCode::Text)
    );
    assert!(!column(&catalog, "holder", 0).protected());
    assert_eq!(catalog.protected().len(), 2);

    // A copy goes its own way.
    let before = catalog.clone();
    catalog.apply(&table(20010, "renamed", &[INT4, INT4]));
    let find = |catalog: &Catalog, name| catalog.schema().relation(Some("public"), name).cloned();
    assert_eq!(find(&catalog, "plain"), None);
    assert_eq!(find(&catalog, "renamed").unwrap().oid, 20010);
    assert_eq!(find(&before, "plain").unwrap().oid, 20010);
    assert_eq!(find(&before, "renamed"), None);

    // Two tables change their names.
    let mut swap = Vec::from(table(20000, "renamed", &[INT4]));
    swap.extend(table(20010, "t", &[ENC_TEXT]));
    catalog.apply(&swap);
    assert_eq!(find(&catalog, "renamed").unwrap().oid, 20000);
    assert_eq!(find(&catalog, "t").unwrap().oid, 20010);

    let gone = |class, oid| Record::Gone { class, oid };
    catalog.apply(&[gone(RELATIONS, 20010), gone(TYPES, 20011), gone(9, 9)]);
    assert_eq!(find(&catalog, "t"), None);
    assert_eq!(find(&catalog, "renamed").unwrap().oid, 20000);
}

/// A domain has its base type's values; of other families it is not stored. Bug: it stands for the plain type in
/// what the server is told of parameters.
#[test]
fn domains() {
    let domain = |oid, name: &str, part| match ty(oid, 2200, name, 0, part) {
        Record::Type(t) => Record::Type(TypeRecord { domain: true, ..t }),
        other => other,
    };
    let mut records = base();
    records.extend([
        ty(17100, 11, "rnd_text", 0, 0),
        domain(16500, "of_text", ENC_TEXT),
        domain(30001, "of_domain", 16500),
        domain(30002, "of_cells", 17100),
        domain(30003, "of_int", INT4),
        ty(30004, 2200, "_of_text", 0, 16500),
    ]);
    records.extend(table(20040, "d", &[16500, 30001, 30002, 30003, 30004]));
    let catalog = Catalog::new(&records, None);
    let text = ColumnType::Enc(TypeCode::Text);
    assert_eq!(column(&catalog, "d", 0), text);
    assert_eq!(column(&catalog, "d", 1), text);
    assert_eq!(
        column(&catalog, "d", 2),
        ColumnType::Opaque(30002, "of_cells".into())
    );
    assert_eq!(
        column(&catalog, "d", 3),
        ColumnType::Plain(30003, "of_int".into())
    );
    assert_eq!(
        column(&catalog, "d", 4),
        ColumnType::Opaque(30004, "_of_text".into())
    );
    let oids: Vec<u32> = catalog.protected().iter().map(|(oid, _)| *oid).collect();
    assert_eq!(oids[..2], [ENC_TEXT, ENC_TEXT + 1]);
    assert!(oids.contains(&16500) && oids.contains(&30001) && !oids.contains(&30002));
}

/// A composite type gets a protected attribute: what is made of it is protected from then
/// on, though nothing is reported of it.
#[test]
fn others_follow() {
    let mut catalog = Catalog::new(&base(), None);
    catalog.apply(&[
        ty(30000, 2200, "domain", 0, 20021),
        function(30001, "f", 30000),
    ]);
    assert!(
        catalog
            .schema()
            .protected_relations()
            .all(|r| r.name == "t")
    );
    catalog.apply(&table(20010, "plain", &[INT4, ENC_TEXT]));
    assert_eq!(
        column(&catalog, "holder", 0),
        ColumnType::Opaque(20011, "plain".into())
    );
    let all = catalog.schema().protected_relations().count();
    assert_eq!(all, 3, "t, plain, holder");
    catalog.apply(&table(20010, "plain", &[INT4]));
    assert!(!column(&catalog, "holder", 0).protected());
}

/// A schema gets another name, and a protected type comes late.
#[test]
fn renamed_schema_and_new_type() {
    let mut catalog = Catalog::new(&base(), None);
    catalog.apply(&[namespace(2200, "other")]);
    assert!(catalog.schema().relation(Some("public"), "t").is_none());
    assert!(
        catalog
            .schema()
            .relation(Some("other"), "t")
            .unwrap()
            .protected()
    );
    catalog.apply(&[ty(17010, 11, "enc_int4", 0, 0)]);
    assert_eq!(catalog.protected().len(), 3);
    let class = TYPES;
    catalog.apply(&[Record::Gone { class, oid: 17010 }]);
    assert_eq!(catalog.protected().len(), 2);
}

/// What nobody has reported is protected, if it is not the system's.
#[test]
fn unknown_types() {
    let mut catalog = Catalog::new(&base(), None);
    catalog.apply(&table(20030, "odd", &[2276, 40000]));
    assert!(!column(&catalog, "odd", 0).protected());
    assert!(column(&catalog, "odd", 1).protected());
}

/// Sessions with one search path share a schema and its analyses; a change ends that for those
/// that see it, not for those that do not yet.
#[test]
fn meanings_are_shared() {
    let mut catalog = Catalog::new(&base(), None);
    let path = ["public".to_owned()];
    let (schema, memo) = catalog.meaning(&path);
    let look = |schema: &Arc<Schema>, memo: &Memo| {
        let (found, known) = memo.look("SELECT 1", schema, &Prepared::default());
        assert_eq!(found.expect("select").len(), 1);
        known
    };
    assert!(!look(&schema, &memo));
    let (other, its) = catalog.meaning(&path);
    assert!(Arc::ptr_eq(&schema, &other) && look(&other, &its));
    assert!(!Arc::ptr_eq(&schema, &catalog.meaning(&[]).0));
    let before = catalog.clone();
    catalog.apply(&[namespace(77, "later")]);
    for changed in [&catalog, &before] {
        let (new, its) = changed.meaning(&path);
        assert_eq!(new.search_path(), path);
        assert!(!Arc::ptr_eq(&schema, &new) && !look(&new, &its));
    }
    assert!(look(&schema, &memo));
}
